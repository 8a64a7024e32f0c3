// The proxy's life around one sandbox. plan() is before the start: ports of the host are bound
// there, so that one that is taken ends the run before anything was made. open() is after it,
// because the sockets on which the proxy serves are made inside the sandbox's network namespace and
// handed out. What the kernel can redirect is known only then, too, so a clause may be lowered
// after the start, and a required one ends the run.
#include "runtime/sandbox_egress.h"

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/random.h"
#include "egress/environment.h"
#include "policy/defaults.h"
#include "policy/ignore.h"

namespace belljar::runtime {
namespace {

constexpr std::size_t kMostPorts = 16;
constexpr std::string_view kTransparent = "network.transparent";

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

egress::ProxySockets take_doors(PassedSockets inside) {
  using Purpose = launch::InnerSocket::Purpose;
  egress::ProxySockets doors;
  doors.init_pid = inside.init_pid;
  std::vector<UniqueFd>& sockets = inside.sockets;
  for (std::size_t i = 0; i < sockets.size() && i < inside.planned.size(); ++i) {
    if (!sockets[i].valid()) continue;
    switch (inside.planned[i].purpose) {
      case Purpose::kProxy:
        doors.listeners.push_back({egress::ClientKind::kProxy, std::move(sockets[i])});
        break;
      case Purpose::kDirect:
        doors.listeners.push_back({egress::ClientKind::kDirect, std::move(sockets[i])});
        break;
      case Purpose::kDnsStream:
        doors.listeners.push_back({egress::ClientKind::kDnsStream, std::move(sockets[i])});
        break;
      case Purpose::kHostPort:
        doors.listeners.push_back({egress::ClientKind::kHostPort, std::move(sockets[i]), inside.planned[i].host_port});
        break;
      case Purpose::kMaker:
        doors.maker = std::move(sockets[i]);
        break;
      case Purpose::kDns:
        doors.dns = std::move(sockets[i]);
        break;
      case Purpose::kDiag:
        doors.diag = std::move(sockets[i]);
        break;
      case Purpose::kPeers:  // the broker's
      case Purpose::kPairs:
        break;
    }
  }
  return doors;
}

Result<UniqueFd> listen_on_host(std::uint16_t port) {
  constexpr int kBacklog = 128;
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd.valid()) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);  // connections that have ended do not count
  if (fd.valid() && ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::listen(fd.get(), kBacklog) == 0)
    return fd;
  return Error(Code::kFailedPrecondition, format("cannot publish on port {} of the host", port))
      .sys(errno, "bind")
      .next("choose another: --publish HOST:INSIDE");
}

std::string count(std::size_t rules) { return format("{} rule{}", rules, rules == 1 ? "" : "s"); }

egress::RuleOrigins rule_origins(const Origins* origins) {
  return {origin_of(origins, "network.allowed_domains"), origin_of(origins, "network.denied_domains"),
          origin_of(origins, "network.allowed_requests")};
}

}  // namespace

std::string describe_domains(const std::vector<std::string>& allowed, const std::vector<std::string>& denied) {
  return format("{} allowed, {} denied; public addresses only unless listed", count(allowed.size()), count(denied.size()));
}

PassedSockets passed_sockets(launch::Sandbox& sandbox, const launch::Plan& plan) {
  return {.planned = plan.sockets,
          .sockets = sandbox.take_sockets(),
          .init_pid = sandbox.init_pid(),
          .routes_errno = sandbox.routes_errno(),
          .redirect_errno = sandbox.redirect_errno()};
}

broker::Inner take_inner(PassedSockets& inside) noexcept {
  broker::Inner inner;
  for (std::size_t i = 0; i < inside.sockets.size() && i < inside.planned.size(); ++i) {
    using Purpose = launch::InnerSocket::Purpose;
    if (inside.planned[i].purpose == Purpose::kPeers) inner.diag = std::move(inside.sockets[i]);
    if (inside.planned[i].purpose == Purpose::kPairs) inner.pairs = std::move(inside.sockets[i]);
  }
  return inner;
}

Result<void> SandboxEgress::plan(std::vector<std::string>& env, EnforcementReport& report) {
  const Network& network = policy_.network;
  BELLJAR_CHECK(plan_ports(report));
  if (network.mode != NetMode::kProxy) return {};
  BELLJAR_CHECK(policy::make_host_rules(network));  // a policy written in code was not parsed
  if (!network.upstream_proxy.empty()) {
    upstream_ = BELLJAR_TRY(egress::parse_upstream(network.upstream_proxy, network.upstream_bypass));
    report.push_back({"network.upstream_proxy", to_string(upstream_->place), "egress proxy: everything that leaves goes through it",
                      Enforced::kPartial, "it resolves names again: which address it dials is not seen here"});
  }
  if (network.proxy_auth) {
    const std::string secret = random_hex(16);
    if (secret.empty()) return Error(Code::kUnavailable, "cannot make a credential for the proxy").sys(errno, "getrandom");
    credential_ = "belljar:" + secret;
  }
  const auto java = find_variable(env, "JAVA_TOOL_OPTIONS");
  const auto port = static_cast<std::uint16_t>(network.http_proxy_port.value_or(policy::kProxyPort));
  const std::string java_options = java == env.end() ? "" : java->substr(java->find('=') + 1);
  for (auto& [name, value] : egress::proxy_environment(port, credential_, java_options)) {
    if (policy_.environment.set.contains(name) || command_.env.contains(name)) continue;
    const auto found = find_variable(env, name);
    if (found != env.end()) *found = name + "=" + value;
    else env.push_back(name + "=" + value);
  }
  if (interception_ != nullptr) interception_->plan(policy_, command_, env, report);
  report.push_back({std::string(kDomainsClause), describe_domains(network.allowed_domains, network.denied_domains),
                    "egress proxy: names judged before they are looked up, addresses before they are dialled", Enforced::kFull,
                    "what an allowed tunnel carries is not looked at, where no rule needs it"});
  if (network.transparent)
    report.push_back({std::string(kTransparent),
                      "programs that know nothing of the proxy are served by the same rules",
                      "resolver on 127.0.0.53, TCP redirected by nf_tables; IPv6 and UDP stay unreachable",
                      Enforced::kFull,
                      {}});
  if (!network.allowed_requests.empty())
    report.push_back({"network.allowed_requests",
                      count(network.allowed_requests.size()) + " for requests",
                      "egress proxy: each request judged, TLS looked into; what cannot be looked into does not go there",
                      Enforced::kFull,
                      {}});
  report_limits(report);
  if (network.methods == NetMethods::kLimited)
    report.push_back(
        {"network.methods", "GET, HEAD and OPTIONS only, without bodies", "egress proxy: TLS is looked into", Enforced::kFull, {}});
  return {};
}

void SandboxEgress::report_limits(EnforcementReport& report) const {
  const Limits& limits = policy_.limits;
  const auto add = [&](const char* clause, const std::string& asked, const char* how, const char* detail) {
    report.push_back({clause, asked, how, Enforced::kFull, detail});
  };
  if (limits.egress_bytes)
    add("limits.egress_bytes", to_string(*limits.egress_bytes), "egress proxy: then every connection is cut",
        "counted burst by burst: a few MiB more may pass");
  if (limits.egress_connections)
    add("limits.egress_connections", format("{} at one time", *limits.egress_connections), "egress proxy: further ones wait", "");
  if (policy_.network.methods == NetMethods::kLimited)
    add("limits.egress_heads", to_string(limits.egress_heads) + " a minute for each rule", "egress proxy: then requests wait",
        "what is said again counts 2 bytes");
  if (limits.egress_rate)
    add("limits.egress_rate", to_string(*limits.egress_rate) + " a second", "egress proxy: connections wait for their share", "");
}

// Taken before the start, so that a port that is not free ends it.
Result<void> SandboxEgress::plan_ports(EnforcementReport& report) {
  const Network& network = policy_.network;
  if (network.publish.size() + network.host_ports.size() > kMostPorts)
    return Error(Code::kResourceExhausted, format("cannot join more than {} ports", kMostPorts)).next("publish fewer");
  for (const PortPair& ports : network.publish)
    published_.push_back({egress::ClientKind::kPublished, BELLJAR_TRY(listen_on_host(ports.host)), ports.inside});
  const auto list = [](const std::vector<PortPair>& all) {
    std::string text;
    for (const PortPair& ports : all) text += (text.empty() ? "" : ", ") + to_string(ports);
    return text;
  };
  if (!network.publish.empty())
    report.push_back({"network.publish", list(network.publish), "listeners on the host's 127.0.0.1, joined by the front",
                      Enforced::kFull, "every user of this machine can connect to them"});
  if (!network.host_ports.empty())
    report.push_back({"network.host_ports",
                      list(network.host_ports),
                      "listeners inside, joined with these ports of the host's loopback only",
                      Enforced::kFull,
                      {}});
  return {};
}

// Known only now: the kernel is asked by doing it. Less than was said is told in the report, or ends the run where it was required.
Result<void> SandboxEgress::check_transparent(const PassedSockets& inside, EnforcementReport& report) const {
  if (!policy_.network.transparent || inside.redirect_errno == 0) return {};
  const auto clause = std::ranges::find(report, kTransparent, &EnforcementClause::clause);
  if (clause == report.end()) return {};
  const bool routes = inside.routes_errno == 0;
  clause->enforced = routes ? Enforced::kPartial : Enforced::kNone;
  clause->mechanism = routes ? "resolver on 127.0.0.53, local routes and listeners" : "none";
  clause->detail = routes ? "this kernel has no nf_tables tproxy: only ports 80, 443 and those that rules name are caught"
                          : "this kernel routes no single protocol: programs that know nothing of the proxy find no network";
  clause->best_effort = true;
  if (std::ranges::find(policy_.require, kTransparent) == policy_.require.end()) return {};
  return Error(Code::kFailedPrecondition, format("cannot enforce {}, which the policy requires", kTransparent))
      .sys(routes ? inside.redirect_errno : inside.routes_errno, "netlink")
      .reason(clause->detail)
      .next("drop it from `require`, or use a kernel with nf_tables");
}

Result<void> SandboxEgress::open(PassedSockets inside, EnforcementReport& report, bool spare_descriptors) {
  if (!wanted()) return {};
  BELLJAR_CHECK(check_transparent(inside, report));
  egress::ProxyOptions options;
  options.fake_addresses = inside.fake_addresses;
  egress::ProxySockets doors = take_doors(std::move(inside));
  if (policy_.network.mode == NetMode::kProxy && doors.listeners.empty())
    return Error(Code::kInternal, "cannot serve the sandbox's network").reason("the backend made no socket for the proxy");
  for (egress::ProxyListener& door : published_) doors.listeners.push_back(std::move(door));
  if (spare_descriptors) raise_open_files();
  options.rules = BELLJAR_TRY(policy::make_host_rules(policy_.network));
  options.methods = policy_.network.methods == NetMethods::kLimited ? egress::Methods::kLimited : egress::Methods::kFull;
  options.credential = credential_;
  options.rule_origins = rule_origins(origins_);
  options.limit_origin = origin_of(origins_, "limits.egress_bytes");
  options.heads_origin = origin_of(origins_, "limits.egress_heads");
  options.mode_origin = origin_of(origins_, "network.methods");
  options.credentials_origin = origin_of(origins_, "network.credentials");
  options.upstream = std::move(upstream_);
  options.interception = BELLJAR_TRY(policy::make_interception_rules(policy_.network));
  if (interception_ != nullptr) {
    options.interceptor = interception_->interceptor();
    options.credentials = interception_->credentials();
  }
  const Limits& limits = policy_.limits;
  if (limits.egress_bytes) options.max_bytes = limits.egress_bytes->count;
  options.max_heads = limits.egress_heads.count;
  if (limits.egress_rate) options.max_rate = limits.egress_rate->count;
  if (limits.egress_connections) options.max_connections = *limits.egress_connections;
  proxy_ = BELLJAR_TRY(egress::Proxy::start(std::move(doors), std::move(options)));
  return {};
}

void SandboxEgress::close(ExecResult& result) {
  if (proxy_ == nullptr) return;
  egress::EgressLog log = proxy_->stop();
  proxy_.reset();
  add(std::move(log), result);
}

void SandboxEgress::take(ExecResult& result) {
  if (proxy_ != nullptr) add(proxy_->take_log(), result);
}

Result<policy::HostRules> SandboxEgress::check_hosts(const Network& network) const {
  if (policy_.network.mode != NetMode::kProxy)
    return Error(Code::kFailedPrecondition, "cannot change the hosts that may be reached")
        .reason("no proxy of ours serves this sandbox")
        .next("start it with network.mode = \"proxy\"");
  policy::HostRules rules = BELLJAR_TRY(policy::make_host_rules(network));
  if (!rules.requests.empty() && interception_ == nullptr && policy::wants_interception(network))
    return Error(Code::kFailedPrecondition, "cannot use rules for requests")
        .reason("the sandbox was started without a look into TLS")
        .next("start it with network.allowed_requests, or allow the whole host");
  return rules;
}

Result<void> SandboxEgress::set_hosts(const Network& network, const Origins* origins) {
  policy::HostRules rules = BELLJAR_TRY(check_hosts(network));
  if (proxy_ == nullptr)
    return Error(Code::kFailedPrecondition, "cannot change the hosts that may be reached").reason("the proxy does not serve yet");
  proxy_->set_rules(std::move(rules), rule_origins(origins));
  return {};
}

void SandboxEgress::add(egress::EgressLog log, ExecResult& result) const {
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
  std::ranges::move(log.records, std::back_inserter(result.egress));
  result.egress_dropped += log.records_dropped;
}

}  // namespace belljar::runtime
