#include "runtime/start_inputs.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "kernel/seccomp.h"
#include "policy/ignore.h"
#include "policy/refusal.h"

namespace belljar::runtime {

LimitContext limit_context(const backend::Prepared& prepared, const Policy& policy, const std::string& workspace) {
  const bool unconfined = policy.mode == Mode::kDangerFullAccess || policy.mode == Mode::kExternalSandbox;
  return {.pid_namespace = prepared.pid_namespace,
          .user_namespace = prepared.user_namespace,
          .kernel_uid_0 = prepared.plan.identity == launch::Identity::kKeep && geteuid() == 0,
          .kill_by_cgroup = !prepared.pid_namespace,
          .group_writable = unconfined,
          .workspace = workspace,
          .private_tmp = policy.filesystem.tmp == Tmp::kPrivate && prepared.pid_namespace};
}

broker::BrokerOptions broker_options(const backend::Prepared& prepared, const Policy& policy, const Origins* origins) {
  broker::BrokerOptions options;
  options.own_network_namespace = prepared.own_network;
  const launch::Identity identity = prepared.plan.identity;
  if (identity == launch::Identity::kRootMapped || identity == launch::Identity::kSwitched)
    options.uid = prepared.plan.outside_uid, options.gid = prepared.plan.outside_gid;
  options.origin_of = [origins](const std::string& key) { return origin_of(origins, key); };
  options.rules = prepared.file_rules;
  options.listed = prepared.sockets;
  options.overlay = prepared.overlay;
  options.sockets_held = prepared.sockets_held;
  options.ports_refused = prepared.plan.seccomp_spec.local_ports != kernel::LocalPorts::kOpen;
  options.one_root = !policy.allow_nested_userns;
  options.filter = prepared.plan.seccomp_spec;
  options.network_refused = prepared.own_network;
  options.proxied = policy.network.mode == NetMode::kProxy;
  const IgnoreViolations& ignore = policy.ignore_violations;
  if (!ignore.file.empty() || !ignore.network.empty())
    options.ignored = [&ignore](const Violation& violation) { return policy::is_ignored(ignore, violation); };
  return options;
}

std::function<std::optional<broker::Explanation>(broker::Act, std::string_view, int)> explainer(const Filesystem& complete,
                                                                                                const Origins* origins) {
  return [&complete, protect = origin_of(origins, "filesystem.protect")](broker::Act act, std::string_view path,
                                                                         int errnum) -> std::optional<broker::Explanation> {
    const auto use = act == broker::Act::kRead ? policy::FileUse::kRead : policy::FileUse::kWrite;
    auto found = policy::find_refusal(complete, protect, use, path, errnum);
    if (!found) return std::nullopt;
    return broker::Explanation{std::move(found->rule), std::move(found->origin), std::move(found->allowed)};
  };
}

bool drop_unavailable(const Error& error, backend::Workplace& place) {
  // A file system that cannot be a layer, or layers stacked too deep (a container in a container).
  if (place.overlays && error.call().starts_with("tree: overlay")) return place.overlays = false, true;
  // One seccomp listener for each chain of filters: another sandbox around us has it.
  if (place.listener && error.errnum() == EBUSY && error.call().starts_with("seccomp")) return place.listener = false, true;
  // Another Belljar's filter, which refuses the broker's sock_diag and has the listener too.
  if (place.listener && error.errnum() == EPROTONOSUPPORT && error.call().starts_with("sockets"))
    return place.listener = false, true;
  return false;
}

}  // namespace belljar::runtime
