#include "runtime/outlet.h"

#include <sys/random.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "egress/environment.h"
#include "policy/defaults.h"
#include "policy/ignore.h"

namespace belljar::runtime {
namespace {

constexpr std::string_view kTransparent = "network.transparent";

Result<std::string> make_credential() {
  std::array<std::uint8_t, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return Error(Code::kUnavailable, "cannot make a credential for the proxy").sys(errno, "getrandom");
  std::string text = "belljar:";
  for (const std::uint8_t byte : bytes) text += format("{:02x}", byte);
  return text;
}

std::vector<std::string>::iterator find_variable(std::vector<std::string>& env, std::string_view name) {
  return std::ranges::find_if(env, [name](const std::string& entry) {
    return entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name);
  });
}

void raise_open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  constexpr rlim_t kEnough = 65536;
  limit.rlim_cur = std::min(limit.rlim_max, std::max(limit.rlim_cur, kEnough));
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

egress::Doors take_doors(const launch::Plan& plan, std::vector<UniqueFd> sockets) {
  using Purpose = launch::InnerSocket::Purpose;
  egress::Doors doors;
  for (std::size_t i = 0; i < sockets.size() && i < plan.sockets.size(); ++i) {
    if (!sockets[i].valid()) continue;
    switch (plan.sockets[i].purpose) {
      case Purpose::kProxy:
        doors.listeners.push_back({egress::Way::kProxy, std::move(sockets[i])});
        break;
      case Purpose::kDirect:
        doors.listeners.push_back({egress::Way::kDirect, std::move(sockets[i])});
        break;
      case Purpose::kDnsStream:
        doors.listeners.push_back({egress::Way::kDnsStream, std::move(sockets[i])});
        break;
      case Purpose::kDns:
        doors.dns = std::move(sockets[i]);
        break;
      case Purpose::kDiag:
        doors.diag = std::move(sockets[i]);
        break;
    }
  }
  return doors;
}

std::string count(std::size_t rules) { return format("{} rule{}", rules, rules == 1 ? "" : "s"); }

}  // namespace

Result<void> Outlet::plan(launch::Plan& plan, EnforcementReport& report) {
  if (!wanted()) return {};
  const Network& network = policy_.network;
  BELLJAR_CHECK(policy::make_host_rules(network));  // a policy written in code was not parsed
  if (network.proxy_auth) credential_ = BELLJAR_TRY(make_credential());
  const auto java = find_variable(plan.env, "JAVA_TOOL_OPTIONS");
  const std::string java_options = java == plan.env.end() ? "" : java->substr(java->find('=') + 1);
  for (auto& [name, value] : egress::proxy_environment(policy::kProxyPort, credential_, java_options)) {
    if (policy_.environment.set.contains(name) || command_.env.contains(name)) continue;
    const auto found = find_variable(plan.env, name);
    if (found != plan.env.end()) *found = name + "=" + value;
    else plan.env.push_back(name + "=" + value);
  }
  report.push_back({"network.domains",
                    format("{} allowed, {} denied; public addresses only unless listed", count(network.allowed_domains.size()),
                           count(network.denied_domains.size())),
                    "egress proxy: names judged before they are looked up, addresses before they are dialled", Enforced::kFull,
                    "what an allowed tunnel carries is not looked at"});
  if (network.transparent)
    report.push_back({std::string(kTransparent),
                      "programs that know nothing of the proxy are served by the same rules",
                      "resolver on 127.0.0.53, TCP redirected by nf_tables; IPv6 and UDP stay unreachable",
                      Enforced::kFull,
                      {}});
  if (network.methods == NetMethods::kLimited)
    report.push_back({"network.methods", "GET, HEAD and OPTIONS over http:// only", "egress proxy", Enforced::kFull, {}});
  return {};
}

// Known only now: the kernel is asked by doing it. Less than was said is told in the report, or ends the run where it was required.
Result<void> Outlet::check_transparent(const launch::Sandbox& sandbox, EnforcementReport& report) const {
  if (!policy_.network.transparent || sandbox.redirect_errno() == 0) return {};
  const auto clause = std::ranges::find(report, kTransparent, &EnforcementClause::clause);
  if (clause == report.end()) return {};
  const bool routes = sandbox.routes_errno() == 0;
  clause->enforced = routes ? Enforced::kPartial : Enforced::kNone;
  clause->mechanism = routes ? "resolver on 127.0.0.53, local routes and listeners" : "none";
  clause->detail = routes ? "this kernel has no nf_tables tproxy: only ports 80, 443 and those that rules name are caught"
                          : "this kernel routes no single protocol: programs that know nothing of the proxy find no network";
  clause->best_effort = true;
  if (std::ranges::find(policy_.require, kTransparent) == policy_.require.end()) return {};
  return Error(Code::kFailedPrecondition, format("cannot enforce {}, which the policy requires", kTransparent))
      .sys(routes ? sandbox.redirect_errno() : sandbox.routes_errno(), "netlink")
      .reason(clause->detail)
      .next("drop it from `require`, or use a kernel with nf_tables");
}

Result<void> Outlet::open(launch::Sandbox& sandbox, const launch::Plan& plan, EnforcementReport& report, bool spare_descriptors) {
  std::vector<UniqueFd> sockets = sandbox.take_sockets();
  if (!wanted()) return {};
  egress::Doors doors = take_doors(plan, std::move(sockets));
  doors.init_pid = sandbox.init_pid();
  if (doors.listeners.empty())
    return Error(Code::kInternal, "cannot serve the sandbox's network").reason("the backend made no socket for the proxy");
  BELLJAR_CHECK(check_transparent(sandbox, report));
  if (spare_descriptors) raise_open_files();
  egress::ProxyOptions options;
  options.rules = BELLJAR_TRY(policy::make_host_rules(policy_.network));
  options.methods = policy_.network.methods == NetMethods::kLimited ? egress::Methods::kLimited : egress::Methods::kFull;
  options.credential = credential_;
  options.allowed_origin = origin_of(origins_, "network.allowed_domains");
  options.denied_origin = origin_of(origins_, "network.denied_domains");
  options.mode_origin = origin_of(origins_, "network.methods");
  proxy_ = BELLJAR_TRY(egress::Proxy::start(std::move(doors), std::move(options)));
  return {};
}

void Outlet::close(ExecResult& result) {
  if (proxy_ == nullptr) return;
  egress::EgressLog log = proxy_->stop();
  proxy_.reset();
  std::uint64_t next = result.violations_dropped + result.violations_hidden;
  for (const Violation& violation : result.violations) next += violation.count;
  for (Violation& violation : log.violations) {
    if (policy::is_ignored(policy_.ignore_violations, violation)) {
      result.violations_hidden += violation.count;
      continue;
    }
    violation.sequence += next;
    result.violations.push_back(std::move(violation));
  }
  result.violations_dropped += log.violations_dropped;
  result.egress = std::move(log.records);
  result.egress_dropped = log.records_dropped;
}

}  // namespace belljar::runtime
