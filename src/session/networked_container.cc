// The container comes before its way out: pid 1 inside makes the listening sockets in the container's network
// namespace and passes them out, and the proxy serves them from here. At the end the order is the same: what is
// inside ends first, then the proxy, so that everything that went through is recorded.
//
// A socket that only catches programs which ignore the proxy settings (DNS, direct connections) may be missing;
// the report says so. Any other one is needed, and its absence ends the start.
#include "session/networked_container.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "backend/container/container.h"
#include "backend/container/engine.h"
#include "backend/container/report.h"
#include "backend/container/socket_handover.h"
#include "backend/container/spec.h"
#include "base/format.h"
#include "belljar/cancel.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "launch/plan.h"
#include "policy/defaults.h"
#include "session/live_egress.h"

namespace belljar::session {
namespace {

using namespace backend::container;
using Purpose = launch::InnerSocket::Purpose;

// What serves programs that know nothing of the proxy may be missing, and nothing else.
bool only_catches(Purpose purpose) {
  return purpose == Purpose::kDns || purpose == Purpose::kDnsStream || purpose == Purpose::kDirect;
}

Error not_made(const launch::InnerSocket& socket, int errnum) {
  return Error(Code::kFailedPrecondition, format("cannot listen on port {} inside the container", socket.port))
      .sys(errnum, "bind")
      .next(socket.port < 1024 ? "choose a port above 1023: this engine leaves lower ones to root" : "look at the engine's log");
}

Result<void> check_made(const Spec& spec, HandedSockets& passed, EnforcementReport& report) {
  int uncaught = 0;
  for (std::size_t i = 0; i < spec.sockets.size(); ++i) {
    if (passed.errnos[i] == 0) continue;
    if (!only_catches(spec.sockets[i].purpose)) return not_made(spec.sockets[i], passed.errnos[i]);
    uncaught = passed.errnos[i];
  }
  if (uncaught != 0) lower_transparent(report, uncaught);
  return {};
}

void move_seen(ExecResult& from, ExecResult& to) {
  std::ranges::move(std::exchange(from.egress, {}), std::back_inserter(to.egress));
  std::ranges::move(std::exchange(from.violations, {}), std::back_inserter(to.violations));
  to.egress_dropped += std::exchange(from.egress_dropped, 0);
  to.violations_dropped += std::exchange(from.violations_dropped, 0);
  to.violations_hidden += std::exchange(from.violations_hidden, 0);
}

}  // namespace

NetworkedContainer::NetworkedContainer(Spec spec, Policy policy, LiveEgressOptions options)
    : policy_(std::move(policy)), spec_(std::move(spec)), egress_(std::make_shared<LiveEgress>(policy_, std::move(options))) {}

Result<void> NetworkedContainer::plan(EnforcementReport& report) {
  BELLJAR_CHECK(egress_->plan(spec_.env, report));
  lower_transparent(report, 0);
  return {};
}

Result<void> NetworkedContainer::start(const Engine& engine, EnforcementReport& report, const CancelToken& cancel) {
  container_ = BELLJAR_TRY(Container::start(engine, spec_, cancel));
  if (!spec_.filter.empty() && !container_->filtered()) lower_filter(report);
  lower_root(container_->unasked(), report);
  lower_tmp(container_->larger(), report);
  lower_status(container_->status(), spec_, report);
  HandedSockets passed = container_->take_passed();
  if (spec_.sockets.empty()) return {};
  BELLJAR_CHECK(check_made(spec_, passed, report));
  return egress_->open({.planned = spec_.sockets,
                        .sockets = std::move(passed.sockets),
                        .init_pid = passed.pid,
                        .fake_addresses = policy::kFakeLoopback},
                       report);
}

Result<void> NetworkedContainer::stop(const CancelToken& cancel) {
  Result<void> stopped;
  if (container_ != nullptr) stopped = container_->stop(cancel);
  const std::lock_guard lock(mutex_);
  egress_->close(unread_);
  return stopped;
}

void NetworkedContainer::take_seen(ExecResult& result) {
  const std::lock_guard lock(mutex_);
  move_seen(unread_, result);
  std::uint64_t next = 0;
  for (Violation& violation : result.violations) {
    violation.sequence = next;
    next += violation.count;
  }
  egress_->take(result);
}

void NetworkedContainer::give_back(ExecResult& unread) {
  const std::lock_guard lock(mutex_);
  move_seen(unread, unread_);
}

Result<ContainerStats> usage_of(std::span<const std::shared_ptr<NetworkedContainer>> containers, const CancelToken& cancel) {
  ContainerStats all;
  for (const auto& container : containers) {
    if (!container->channel()->alive()) continue;
    const auto used = container->container().stats(cancel);
    if (!used && !container->channel()->alive()) continue;  // it ended meanwhile
    if (!used) return used.error();
    all.cpu += used->cpu;
    all.memory += used->memory;
    all.processes += used->processes;
  }
  return all;
}

}  // namespace belljar::session
