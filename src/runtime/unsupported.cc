#include "runtime/unsupported.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/units.h"
#include "policy/defaults.h"

namespace belljar::runtime {
namespace {

Error unsupported(std::string what, std::string reason, std::string next) {
  return Error(Code::kUnimplemented, "cannot enforce " + std::move(what)).reason(std::move(reason)).next(std::move(next));
}

constexpr std::uint64_t kDnsPort = 53;  // the resolver's

// A published proxy would serve every user of the machine as this sandbox; a port that is taken inside fails as a bare errno.
Result<void> check_ports(const Network& network) {
  std::set<std::uint64_t> taken;
  if (network.mode == NetMode::kProxy)
    taken = {kDnsPort, policy::kProxyPort, network.http_proxy_port.value_or(policy::kProxyPort),
             network.socks_proxy_port.value_or(policy::kProxyPort)};
  const auto refuse = [](const char* key, const PortPair& ports, const char* why) {
    return Error(Code::kInvalidArgument, format("cannot serve {} {}", key, to_string(ports)))
        .reason(format("{} inside {}", ports.inside, why))
        .next("name another port INSIDE");
  };
  constexpr char kOurs[] = "is the proxy's or the resolver's own";
  for (const PortPair& ports : network.publish) {
    if (taken.contains(ports.inside)) return refuse("network.publish (--publish)", ports, kOurs);
  }
  // Ours listens inside then, and a connection from outside would go round and round.
  const auto published = [&](std::uint64_t port) {
    return std::ranges::any_of(network.publish, [&](const PortPair& ports) { return ports.inside == port; });
  };
  std::set<std::uint64_t> joined;
  for (const PortPair& ports : network.host_ports) {
    if (taken.contains(ports.inside)) return refuse("network.host_ports (--host-port)", ports, kOurs);
    if (published(ports.inside)) return refuse("network.host_ports (--host-port)", ports, "is published");
    if (!joined.insert(ports.inside).second) return refuse("network.host_ports (--host-port)", ports, "is joined twice");
  }
  return {};
}

// A tmpfs counts whole pages (up to 64KiB, on some machines), and a few of them go into the mount tree before any command runs.
constexpr Bytes kLeastTmp{1U << 20};

Result<void> check_size(std::string_view key, Bytes size, bool private_tmp) {
  if (size >= kLeastTmp || (size.count != 0 && !private_tmp)) return {};
  return Error(Code::kInvalidArgument, format("{} is {}", key, to_string(size)))
      .reason(size.count == 0 ? "the kernel takes 0 for no limit, tmpfs(5), and a private /tmp would have none"
                              : "a private /tmp cannot be made in less than 1MiB")
      .next("give at least 1MiB, or leave it out");
}

Result<void> check_sizes(const Limits& limits, const Filesystem& filesystem) {
  const bool private_tmp = filesystem.tmp == Tmp::kPrivate;
  BELLJAR_CHECK(check_size("filesystem.tmp_size", filesystem.tmp_size, private_tmp));
  if (limits.disk) BELLJAR_CHECK(check_size("limits.disk", *limits.disk, private_tmp));
  return {};
}

Result<void> check_network(const Network& network) {
  const bool proxy = network.mode == NetMode::kProxy;
  const std::string reason = format("network.mode is \"{}\", and only the proxy judges destinations", to_string(network.mode));
  if (!proxy && (!network.allowed_domains.empty() || !network.denied_domains.empty()))
    return unsupported("network.allowed_domains and network.denied_domains", reason, "use `--net proxy`, or drop the domain rules");
  if (!proxy && (network.methods == NetMethods::kLimited || network.proxy_auth))
    return unsupported(network.proxy_auth ? "network.proxy_auth" : "network.methods", reason, "use `--net proxy`, or drop the key");
  if (proxy && network.proxy_auth && network.transparent)
    return unsupported("network.proxy_auth", "network.transparent serves programs that give no credential", "drop one of the two");
  if (!proxy && (!network.credentials.empty() || !network.tls_passthrough.empty() || network.tls_ca_file))
    return unsupported(!network.credentials.empty() ? "network.credentials"
                       : network.tls_ca_file        ? "network.tls_ca_file"
                                                    : "network.tls_passthrough",
                       reason, "use `--net proxy`, or drop the key");
  if (network.mode == NetMode::kHost && !network.publish.empty())
    return unsupported("network.publish", "network.mode is \"host\": the command's ports are the host's own", "drop the key");
  if (network.mode == NetMode::kHost && !network.host_ports.empty())
    return unsupported("network.host_ports", "network.mode is \"host\": every port of the host is reachable", "drop the key");
  if (!network.publish.empty() && network.allow_local_binding == false)
    return unsupported("network.publish", "network.allow_local_binding is false: nothing inside may listen", "drop one of the two");
  const bool ports = network.http_proxy_port || network.socks_proxy_port, upstream = !network.upstream_proxy.empty();
  if (!proxy && (!network.allowed_requests.empty() || ports || upstream))
    return unsupported(upstream ? "network.upstream_proxy"
                       : ports  ? "network.http_proxy_port"
                                : "network.allowed_requests",
                       reason, "use `--net proxy`, or drop the key");
  if (!upstream && !network.upstream_bypass.empty())
    return unsupported("network.upstream_bypass", "there is no network.upstream_proxy", "drop the key, or name the proxy");
  for (const auto& port : {network.http_proxy_port, network.socks_proxy_port}) {
    if (port && (*port < 1 || *port > 65535 || *port == kDnsPort))
      return unsupported("network.http_proxy_port and network.socks_proxy_port", format("{} is no port that is free", *port),
                         "name another from 1 to 65535");
  }
  return check_ports(network);
}

}  // namespace

Result<void> check_supported(const Policy& policy) {
  BELLJAR_CHECK(check_network(policy.network));
  const Limits& limits = policy.limits;
  if (policy.network.mode != NetMode::kProxy && (limits.egress_bytes || limits.egress_connections || limits.egress_rate))
    return unsupported("limits.egress_bytes, egress_connections and egress_rate", "only the proxy counts what passes",
                       "use `--net proxy`, or drop the keys");
  if (policy.network.methods != NetMethods::kLimited && limits.egress_heads != Limits().egress_heads)
    return unsupported("limits.egress_heads", "heads of requests are counted where network.methods is \"limited\"",
                       "use `--net-methods limited`, or drop the key");
  BELLJAR_CHECK(check_sizes(limits, policy.filesystem));
  if (policy.filesystem.clean_temp_dir && policy.filesystem.tmp == Tmp::kShared && !policy.filesystem.temp_dir)
    return unsupported("filesystem.clean_temp_dir", "filesystem.tmp is \"shared\": files in the host's /tmp stay there",
                       "name filesystem.temp_dir, or drop one of the two");
  const bool unfiltered = policy.mode == Mode::kDangerFullAccess || policy.mode == Mode::kExternalSandbox;
  if (unfiltered && (!policy.network.publish.empty() || !policy.network.host_ports.empty()))
    return unsupported("network.publish and network.host_ports", format("mode {} drops network rules", to_string(policy.mode)),
                       "drop the keys, or use another mode");
  if (unfiltered && policy.network.mode == NetMode::kProxy)
    return unsupported("network.mode = \"proxy\"", format("mode {} drops network rules", to_string(policy.mode)),
                       "drop the network keys, or use another mode");
  if (!policy.commands.allow.empty() || !policy.commands.deny.empty())
    return unsupported(policy.commands.deny.empty()    ? "commands.allow"
                       : policy.commands.allow.empty() ? "commands.deny"
                                                       : "commands.allow and commands.deny",
                       "they guide what an agent asks; a program that runs starts others without any shell",
                       "use `belljar mcp` or `belljar agent`, or with_command_rules() (belljar/decorators.h), which judge by "
                       "them; or drop the key");
  if (policy.permission.mode == "plan")
    return unsupported("permission.mode = \"plan\"", "nothing here asks or judges what is proposed",
                       "use `belljar mcp` or `belljar agent`, or mode = \"read-only\" (`--policy read-only`)");
  if (policy.limits.write_quota)
    return unsupported("limits.write_quota",
                       "it counts what goes through the file API, which with_write_quota() (belljar/decorators.h) does",
                       "put that around the sandbox, or use limits.disk (`--disk`) for the growth of workspace and tmp");
  return {};
}

}  // namespace belljar::runtime
