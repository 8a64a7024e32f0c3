// A container and its way out, as one thing that starts and ends.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "backend/container/container.h"
#include "backend/container/engine.h"
#include "backend/container/spec.h"
#include "belljar/cancel.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "session/live_egress.h"

namespace belljar::session {

// plan() and start() once, one after the other; then safe from any thread.
class NetworkedContainer {
 public:
  NetworkedContainer(backend::container::Spec spec, Policy policy, LiveEgressOptions options);
  ~NetworkedContainer() { (void)stop(); }
  NetworkedContainer(const NetworkedContainer&) = delete;
  NetworkedContainer& operator=(const NetworkedContainer&) = delete;

  // Adds the variables that name the proxy, and the clauses of the network; takes ports of the host. Errors: as
  // SandboxEgress::plan.
  Result<void> plan(EnforcementReport& report);
  // Starts the container and serves its network. Less than plan() said is told in `report`. Errors: as Container::start;
  // kFailedPrecondition, its pid 1 could not make a socket.
  Result<void> start(const backend::container::Engine& engine, EnforcementReport& report, const CancelToken& cancel = {});
  // First what is inside ends, then its way out. Twice is fine. Errors: as Container::stop; its way out is closed all the same.
  Result<void> stop(const CancelToken& cancel = {});

  const backend::container::Container& container() const noexcept { return *container_; }
  const std::shared_ptr<backend::container::Channel>& channel() const noexcept { return container_->channel(); }
  // The environment of its commands, with plan()'s variables.
  const std::vector<std::string>& environment() const noexcept { return spec_.env; }
  LiveEgress& egress() const noexcept { return *egress_; }
  // Adds what went through and what was refused since the last time, also after stop().
  void take_seen(ExecResult& result);
  // Takes that back from a result that nobody will read.
  void give_back(ExecResult& unread);

 private:
  const Policy policy_;
  backend::container::Spec spec_;
  std::shared_ptr<LiveEgress> egress_;
  std::shared_ptr<backend::container::Container> container_;  // from start() on
  std::mutex mutex_;
  ExecResult unread_;  // guarded by mutex_; of the end, or given back
};

// The sum of what the running ones use. Errors: as Engine::stats.
Result<backend::container::ContainerStats> usage_of(std::span<const std::shared_ptr<NetworkedContainer>> containers,
                                                    const CancelToken& cancel);

}  // namespace belljar::session
