#include "runtime/unserved.h"

#include <algorithm>

#include "base/format.h"

namespace belljar::runtime {
namespace {

Error unserved(std::string what, std::string reason, std::string next) {
  return Error(Code::kUnimplemented, "cannot enforce " + std::move(what)).reason(std::move(reason)).next(std::move(next));
}

constexpr std::uint64_t kDnsPort = 53;  // the resolver's

Result<void> check_network(const Network& network) {
  const bool proxy = network.mode == NetMode::kProxy;
  const std::string reason = format("network.mode is \"{}\", and only the proxy judges destinations", to_string(network.mode));
  if (!proxy && (!network.allowed_domains.empty() || !network.denied_domains.empty()))
    return unserved("network.allowed_domains and network.denied_domains", reason, "use `--net proxy`, or drop the domain rules");
  if (!proxy && (network.methods == NetMethods::kLimited || network.proxy_auth))
    return unserved(network.proxy_auth ? "network.proxy_auth" : "network.methods", reason, "use `--net proxy`, or drop the key");
  if (!proxy && (!network.credentials.empty() || !network.tls_passthrough.empty() || network.tls_ca_file))
    return unserved(!network.credentials.empty() ? "network.credentials"
                    : network.tls_ca_file        ? "network.tls_ca_file"
                                                 : "network.tls_passthrough",
                    reason, "use `--net proxy`, or drop the key");
  if (network.mode == NetMode::kHost && !network.publish.empty())
    return unserved("network.publish", "network.mode is \"host\": the command's ports are the host's own", "drop the key");
  if (network.mode == NetMode::kHost && !network.host_ports.empty())
    return unserved("network.host_ports", "network.mode is \"host\": every port of the host is reachable", "drop the key");
  const bool ports = network.http_proxy_port || network.socks_proxy_port, upstream = !network.upstream_proxy.empty();
  if (!proxy && (!network.allowed_requests.empty() || ports || upstream))
    return unserved(upstream ? "network.upstream_proxy"
                    : ports  ? "network.http_proxy_port"
                             : "network.allowed_requests",
                    reason, "use `--net proxy`, or drop the key");
  if (!upstream && !network.upstream_bypass.empty())
    return unserved("network.upstream_bypass", "there is no network.upstream_proxy", "drop the key, or name the proxy");
  for (const auto& port : {network.http_proxy_port, network.socks_proxy_port}) {
    if (port && (*port < 1 || *port > 65535 || *port == kDnsPort))
      return unserved("network.http_proxy_port and network.socks_proxy_port", format("{} is no port that is free", *port),
                      "name another from 1 to 65535");
  }
  return {};
}

}  // namespace

Result<void> check_served(const Policy& policy) {
  BELLJAR_CHECK(check_network(policy.network));
  const Limits& limits = policy.limits;
  if (policy.network.mode != NetMode::kProxy && (limits.egress_bytes || limits.egress_connections || limits.egress_rate))
    return unserved("limits.egress_bytes, egress_connections and egress_rate", "only the proxy counts what passes",
                    "use `--net proxy`, or drop the keys");
  const bool unfiltered = policy.mode == Mode::kDangerFullAccess || policy.mode == Mode::kExternalSandbox;
  if (unfiltered && (!policy.network.publish.empty() || !policy.network.host_ports.empty()))
    return unserved("network.publish and network.host_ports", format("mode {} drops network rules", to_string(policy.mode)),
                    "drop the keys, or use another mode");
  if (unfiltered && policy.network.mode == NetMode::kProxy)
    return unserved("network.mode = \"proxy\"", format("mode {} drops network rules", to_string(policy.mode)),
                    "drop the network keys, or use another mode");
  if (!policy.commands.allow.empty() || !policy.commands.deny.empty())
    return unserved("commands.allow and commands.deny", "they guide what an agent asks and cannot hold a program that runs",
                    "drop the key; file and network rules hold without it");
  if (policy.limits.write_quota)
    return unserved("limits.write_quota", "it counts bytes of the file API, which `run` does not have",
                    "use `--disk` for the growth of workspace and tmp");
  return {};
}

}  // namespace belljar::runtime
