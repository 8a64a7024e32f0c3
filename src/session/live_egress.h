// The way out of a sandbox that stays: the hosts that may be reached now, who opened which of them, and what came through that no
// result has told yet. The same for every backend whose network our proxy serves.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "belljar/command.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "runtime/interception.h"
#include "runtime/sandbox_egress.h"
#include "runtime/violations.h"

namespace belljar::session {

void apply(const NetworkRules& rules, Network& network);
NetworkRules rules_of(const Network& network);

struct LiveEgressOptions {
  std::shared_ptr<const runtime::Interception> interception;  // none: nothing is looked into
  std::shared_ptr<const runtime::Origins> origins;            // of the policy as it was given; may be null
  // Set: the rules for hosts that the policy was given, while it has others.
  std::optional<NetworkRules> given_rules;
};

// plan() and open() once, one after the other; then safe from any thread.
class LiveEgress : public std::enable_shared_from_this<LiveEgress> {
 public:
  // `policy`: complete; it outlives this.
  LiveEgress(const Policy& policy, LiveEgressOptions options);
  LiveEgress(const LiveEgress&) = delete;
  LiveEgress& operator=(const LiveEgress&) = delete;

  // As of runtime::SandboxEgress.
  Result<void> plan(std::vector<std::string>& env, EnforcementReport& report) { return egress_->plan(env, report); }
  Result<void> open(runtime::PassedSockets inside, EnforcementReport& report) {
    return egress_->open(std::move(inside), report, false);
  }
  // Adds to `result` what nobody was told.
  void take(ExecResult& result);
  // Takes the records of what went through back from a result that nobody will read.
  void give_back(ExecResult& unread);
  // The sandbox has ended. As take(); twice is fine.
  void close(ExecResult& result);

  // The hosts that may be reached from now on: `rules` instead of the policy's. Errors: as SandboxEgress::set_hosts;
  // kFailedPrecondition, it is closed.
  Result<void> set_rules(const NetworkRules& rules);

  // Opens hosts for as long as it lives.
  class HostGrant {
   public:
    HostGrant(std::shared_ptr<LiveEgress> egress, std::uint64_t id) noexcept : egress_(std::move(egress)), id_(id) {}
    ~HostGrant() { egress_->close_hosts(id_); }
    HostGrant(const HostGrant&) = delete;
    HostGrant& operator=(const HostGrant&) = delete;

   private:
    std::shared_ptr<LiveEgress> egress_;
    std::uint64_t id_;
  };
  // Opens `domains` until the grant goes; null where there are none, in whatever mode. Errors: as of set_rules.
  Result<std::unique_ptr<HostGrant>> open_hosts(const std::vector<std::string>& domains);

 private:
  runtime::Origins origins_of(const NetworkRules& now) const;
  void close_hosts(std::uint64_t id) noexcept;
  Result<void> apply_hosts();  // with mutex_ held

  const Policy& policy_;
  const LiveEgressOptions options_;
  const Command no_command_;  // for SandboxEgress, which wants one: each command brings its own variables
  const runtime::Origins origins_at_start_;
  std::mutex mutex_;
  std::optional<runtime::SandboxEgress> egress_;                    // guarded by mutex_ once it is open, as the next four
  std::optional<NetworkRules> rules_;                               // unset: the policy's
  std::map<std::uint64_t, std::vector<std::string>> opened_hosts_;  // by commands that run
  std::uint64_t next_opened_ = 0;
  std::vector<EgressRecord> untold_;  // given back
};

}  // namespace belljar::session
