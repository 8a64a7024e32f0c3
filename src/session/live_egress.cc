// The hosts that are open now are the policy's, or the rules set since then, plus what each running command
// opened for itself. The three are kept apart and joined anew at each change (apply_hosts). To add and subtract
// in one list would not do: two commands may open the same host, and the end of one must not close it to the
// other.
//
// A change that the proxy refuses leaves the lists as they were. To close hosts cannot fail in that way, since
// the rules that remain held before.
#include "session/live_egress.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "runtime/sandbox_egress.h"
#include "runtime/violations.h"

namespace belljar::session {

void apply(const NetworkRules& rules, Network& network) {
  network.allowed_domains = rules.allowed_domains;
  network.denied_domains = rules.denied_domains;
  network.allowed_requests = rules.allowed_requests;
}

NetworkRules rules_of(const Network& network) {
  return {network.allowed_domains, network.denied_domains, network.allowed_requests};
}

LiveEgress::LiveEgress(const Policy& policy, LiveEgressOptions options)
    : policy_(policy), options_(std::move(options)), origins_at_start_(origins_of(rules_of(policy.network))) {
  egress_.emplace(policy_, no_command_, &origins_at_start_, options_.interception.get());
}

runtime::Origins LiveEgress::origins_of(const NetworkRules& now) const {
  const Origin live{"rules set while the sandbox ran", "", 0};
  const NetworkRules given = options_.given_rules.value_or(rules_of(policy_.network));
  runtime::Origins all = options_.origins != nullptr ? *options_.origins : runtime::Origins();
  if (now.allowed_domains != given.allowed_domains) all["network.allowed_domains"] = live;
  if (now.denied_domains != given.denied_domains) all["network.denied_domains"] = live;
  if (now.allowed_requests != given.allowed_requests) all["network.allowed_requests"] = live;
  return all;
}

void LiveEgress::take(ExecResult& result) {
  const std::lock_guard lock(mutex_);
  std::ranges::move(std::exchange(untold_, {}), std::back_inserter(result.egress));
  if (egress_) egress_->take(result);
}

void LiveEgress::give_back(ExecResult& unread) {
  const std::lock_guard lock(mutex_);
  std::ranges::move(std::exchange(unread.egress, {}), std::back_inserter(untold_));
}

void LiveEgress::close(ExecResult& result) {
  const std::lock_guard lock(mutex_);
  std::ranges::move(std::exchange(untold_, {}), std::back_inserter(result.egress));
  if (egress_) egress_->close(result);
  egress_.reset();
}

Result<void> LiveEgress::set_rules(const NetworkRules& rules) {
  const std::lock_guard lock(mutex_);
  auto before = std::exchange(rules_, rules);
  auto done = apply_hosts();
  if (!done) rules_ = std::move(before);
  return done;
}

Result<std::unique_ptr<LiveEgress::HostGrant>> LiveEgress::open_hosts(const std::vector<std::string>& domains) {
  if (domains.empty()) return std::unique_ptr<HostGrant>();
  const std::lock_guard lock(mutex_);
  const std::uint64_t id = ++next_opened_;
  opened_hosts_[id] = domains;
  if (const auto done = apply_hosts(); !done) {
    opened_hosts_.erase(id);
    return done.error();
  }
  return std::make_unique<HostGrant>(shared_from_this(), id);
}

void LiveEgress::close_hosts(std::uint64_t id) noexcept {
  const std::lock_guard lock(mutex_);
  opened_hosts_.erase(id);
  (void)apply_hosts();  // rules that held before
}

Result<void> LiveEgress::apply_hosts() {
  if (!egress_)
    return Error(Code::kFailedPrecondition, "the sandbox does not run").reason("it was stopped").next("start() it again");
  Network network = policy_.network;
  if (rules_) apply(*rules_, network);
  const runtime::Origins origins = origins_of(rules_of(network));
  for (const auto& [id, domains] : opened_hosts_)
    network.allowed_domains.insert(network.allowed_domains.end(), domains.begin(), domains.end());
  return egress_->set_hosts(network, &origins);
}

}  // namespace belljar::session
