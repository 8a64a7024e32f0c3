// A run's way out (network.mode = "proxy", joined ports): what the command is told of it, the proxy behind it, what came through.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "belljar/command.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "egress/proxy.h"
#include "launch/launcher.h"
#include "runtime/interception.h"
#include "runtime/violations.h"

namespace belljar::runtime {

// Of one run; where nothing leaves and nothing is joined every step does nothing. One thread.
class Outlet {
 public:
  // `interception`: what was made for it before the backend prepared; none where nothing is looked into.
  Outlet(const Policy& policy, const Command& command, const Origins* origins, const Interception* interception)
      : policy_(policy), command_(command), origins_(origins), interception_(interception) {}

  bool wanted() const noexcept {
    const Network& network = policy_.network;
    return network.mode == NetMode::kProxy || !network.publish.empty() || !network.host_ports.empty();
  }
  // Before the start: the variables that name the proxy, unless the policy or the command sets them itself; the clauses.
  Result<void> plan(launch::Plan& plan, EnforcementReport& report);
  // After it: serves from now on. Until then clients wait in the socket's backlog. `spare_descriptors`: this process is the front
  // of the run and nothing else, so its soft limit of open files may go up.
  Result<void> open(launch::Sandbox& sandbox, const launch::Plan& plan, EnforcementReport& report, bool spare_descriptors);
  // The command has ended: closes what is open, and adds records and violations.
  void close(ExecResult& result);

 private:
  Result<void> plan_ports(EnforcementReport& report);
  void report_limits(EnforcementReport& report) const;
  Result<void> check_transparent(const launch::Sandbox& sandbox, EnforcementReport& report) const;

  const Policy& policy_;
  const Command& command_;
  const Origins* origins_;
  const Interception* interception_;
  std::string credential_;
  std::optional<egress::Upstream> upstream_;
  std::vector<egress::Door> published_;
  std::unique_ptr<egress::Proxy> proxy_;
};

}  // namespace belljar::runtime
