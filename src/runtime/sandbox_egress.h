// A run's way out (network.mode = "proxy", joined ports): what the command is told of it, the proxy behind it, what came through.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "belljar/command.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "broker/broker.h"
#include "egress/proxy.h"
#include "launch/launcher.h"
#include "launch/plan.h"
#include "policy/defaults.h"
#include "policy/domains.h"
#include "runtime/interception.h"
#include "runtime/violations.h"

namespace belljar::runtime {

// The clause of the enforcement report that tells of the hosts, and what it says was asked.
inline constexpr std::string_view kDomainsClause = "network.domains";
std::string describe_domains(const std::vector<std::string>& allowed, const std::vector<std::string>& denied);

// The sockets that a sandbox passed out of its network.
struct PassedSockets {
  std::span<const launch::InnerSocket> planned;  // outlives the call that is given this
  std::vector<UniqueFd> sockets;                 // one for each; invalid where it was not made
  int init_pid = 0;                              // in our pid namespace; 0: not known
  int routes_errno = 0, redirect_errno = 0;      // as of launch::Sandbox
  std::uint32_t fake_addresses = policy::kFakeAddresses;
};
PassedSockets passed_sockets(launch::Sandbox& sandbox, const launch::Plan& plan);
// Moves the broker's sockets out; the rest stays.
broker::Inner take_inner(PassedSockets& inside) noexcept;

// Of one run; where nothing leaves and nothing is joined every step does nothing. One thread at a time.
class SandboxEgress {
 public:
  // `interception`: what was made for it before the backend prepared; none where nothing is looked into.
  SandboxEgress(const Policy& policy, const Command& command, const Origins* origins, const Interception* interception)
      : policy_(policy), command_(command), origins_(origins), interception_(interception) {}

  bool wanted() const noexcept {
    const Network& network = policy_.network;
    return network.mode == NetMode::kProxy || !network.publish.empty() || !network.host_ports.empty();
  }
  // Before the start: the variables that name the proxy, unless the policy or the command sets them itself; the clauses.
  Result<void> plan(std::vector<std::string>& env, EnforcementReport& report);
  // After it: serves from now on. Until then clients wait in the socket's backlog. `spare_descriptors`: this process is the front
  // of the run and nothing else, so its soft limit of open files may go up.
  Result<void> open(PassedSockets inside, EnforcementReport& report, bool spare_descriptors);
  // While it serves: adds what happened since the last time.
  void take(ExecResult& result);
  // Checks the rules that set_hosts() would set.
  Result<policy::HostRules> check_hosts(const Network& network) const;
  // While it serves, from any thread: these hosts from now on. Errors: kInvalidArgument, what is no rule; kFailedPrecondition, the
  // mode has no proxy, or rules for requests need a look into TLS that nothing was made for. `origins`: of these rules; may be
  // null.
  Result<void> set_hosts(const Network& network, const Origins* origins);
  // The command has ended: closes what is open, and adds records and violations.
  void close(ExecResult& result);

 private:
  void add(egress::EgressLog log, ExecResult& result) const;
  Result<void> plan_ports(EnforcementReport& report);
  void report_limits(EnforcementReport& report) const;
  Result<void> check_transparent(const PassedSockets& inside, EnforcementReport& report) const;

  const Policy& policy_;
  const Command& command_;
  const Origins* origins_;
  const Interception* interception_;
  std::string credential_;
  std::optional<egress::Upstream> upstream_;
  std::vector<egress::ProxyListener> published_;
  std::unique_ptr<egress::Proxy> proxy_;
};

}  // namespace belljar::runtime
