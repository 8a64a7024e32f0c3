#include "runtime/unserved.h"

#include <algorithm>

#include "base/format.h"

namespace belljar::runtime {
namespace {

Error unserved(std::string what, std::string reason, std::string next) {
  return Error(Code::kUnimplemented, "cannot enforce " + std::move(what)).reason(std::move(reason)).next(std::move(next));
}

Result<void> check_network(const Network& network) {
  const bool proxy = network.mode == NetMode::kProxy;
  const std::string reason = format("network.mode is \"{}\", and only the proxy judges destinations", to_string(network.mode));
  if (!proxy && (!network.allowed_domains.empty() || !network.denied_domains.empty()))
    return unserved("network.allowed_domains and network.denied_domains", reason, "use `--net proxy`, or drop the domain rules");
  if (!proxy && (network.methods == NetMethods::kLimited || network.proxy_auth))
    return unserved(network.proxy_auth ? "network.proxy_auth" : "network.methods", reason, "use `--net proxy`, or drop the key");
  if (!network.credentials.empty())
    return unserved("network.credentials", "this version's egress proxy does not look into TLS, so it cannot put them in",
                    "drop the key; `--pass-env NAME` hands a value to the command itself");
  if (!network.publish.empty())
    return unserved("network.publish", "this version passes no ports out of the sandbox's network",
                    "use `--net host` with allow_local_binding, or drop the key");
  return {};
}

}  // namespace

Result<void> check_served(const Policy& policy) {
  BELLJAR_CHECK(check_network(policy.network));
  const bool unfiltered = policy.mode == Mode::kDangerFullAccess || policy.mode == Mode::kExternalSandbox;
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
