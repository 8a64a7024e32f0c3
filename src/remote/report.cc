// What a policy comes to on a machine elsewhere. A clause reads full only where it is true without the
// service's word: nothing of this machine is there, or this client holds it itself. Isolation alone takes the
// service's word and says so. What the service was asked for and claims to hold is partial. Everything else is
// none, and a start fails on it unless the policy accepts that; for defaults that every policy has, a start
// goes on (not_here).
//
// What joins a command with this machine (proxy, ports, sockets, volumes, devices) is refused by name before
// any request is sent.
#include "remote/report.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "belljar/units.h"
#include "command/request.h"
#include "policy/backends.h"
#include "runtime/unsupported.h"

namespace belljar::remote {
namespace {

constexpr char kElsewhere[] = "a machine elsewhere, whose users and modes decide";

class Report {
 public:
  void full(std::string clause, std::string asked, std::string mechanism) {
    add(std::move(clause), std::move(asked), std::move(mechanism), Enforced::kFull, {}, false);
  }
  void partial(std::string clause, std::string asked, std::string mechanism, std::string detail) {
    add(std::move(clause), std::move(asked), std::move(mechanism), Enforced::kPartial, std::move(detail), false);
  }
  void none(std::string clause, std::string asked, std::string detail) {
    add(std::move(clause), std::move(asked), {}, Enforced::kNone, std::move(detail), false);
  }
  // A default of everybody's that may read `none`; `require` makes it fatal.
  void not_here(std::string clause, std::string asked, std::string detail) {
    add(std::move(clause), std::move(asked), {}, Enforced::kNone, std::move(detail), true);
  }
  EnforcementReport take() { return std::move(clauses_); }

 private:
  void add(std::string clause, std::string asked, std::string mechanism, Enforced enforced, std::string detail, bool best_effort) {
    clauses_.push_back({std::move(clause), std::move(asked), std::move(mechanism), enforced, std::move(detail), best_effort});
  }
  EnforcementReport clauses_;
};

// Somebody's own rule, not one that every policy begins with.
bool is_own(const FsEntry& entry) {
  const std::string& layer = entry.origin.layer;
  return entry.kind == RuleKind::kGiven && (layer.empty() || layer.starts_with("flag") || layer == "system" || layer == "user" ||
                                            layer == "project" || layer == "policy");
}

void report_limits(const Limits& limits, const CloudTraits& traits, Report& report) {
  const std::string nobody = format("the {} decides, and nothing here asks it", traits.image);
  const auto add = [&](const auto& limit, const char* clause, const auto& text, const ClauseEnforcement& holds) {
    if (!limit) return;
    if (holds.enforced == Enforced::kFull) report.full(clause, text(*limit), holds.mechanism);
    else if (holds.enforced == Enforced::kPartial) report.partial(clause, text(*limit), holds.mechanism, holds.detail);
    else report.none(clause, text(*limit), holds.detail.empty() ? nobody : holds.detail);
  };
  const auto number = [](auto value) { return format("{}", value); };
  const auto bytes = [](Bytes value) { return to_string(value); };
  add(limits.memory, "limits.memory", bytes, traits.holds("limits.memory"));
  add(limits.cpus, "limits.cpus", number, traits.holds("limits.cpus"));
  add(limits.pids, "limits.pids", number, {});
  add(limits.open_files, "limits.open_files", number, {});
  add(limits.file_size, "limits.file_size", bytes, {});
  add(limits.disk, "limits.disk", bytes, traits.holds("limits.disk"));
}

void report_network(const Network& network, const CloudTraits& traits, Report& report) {
  if (network.mode != NetMode::kNone) return report.full("network", "the service's network", "no restriction asked for");
  const ClauseEnforcement holds = traits.holds("network");
  if (holds.enforced == Enforced::kFull) report.full("network", "none", holds.mechanism);
  else if (holds.enforced == Enforced::kPartial) report.partial("network", "none", holds.mechanism, holds.detail);
  else report.none("network", "none", holds.detail);
}

}  // namespace

Result<void> check_remote_policy(const Policy& policy, const SandboxConfig& config, const CloudTraits& traits) {
  BELLJAR_CHECK(runtime::check_supported(policy));
  const auto unsupported = [&](std::string_view key, std::string reason, std::string next) {
    return Error(Code::kUnimplemented, format("the {} backend does not serve {}", traits.backend, key))
        .reason(std::move(reason))
        .next(std::move(next));
  };
  const Network& network = policy.network;
  if (policy.mode == Mode::kDangerFullAccess || policy.mode == Mode::kExternalSandbox)
    return unsupported(format("mode {}", to_string(policy.mode)), "it is about this machine, which no command there reaches",
                       "use workspace-write");
  if (network.mode == NetMode::kProxy)
    return unsupported("network.mode = \"proxy\"", "our proxy is on this machine, the command is not",
                       "use `--net none` or `--net host`");
  if (!network.publish.empty() || !network.host_ports.empty() || !network.allow_unix_sockets.empty() ||
      network.allow_all_unix_sockets)
    return unsupported("network.publish, host_ports and unix sockets", "they join the command with this machine", "drop the keys");
  if (network.allow_local_binding == false)
    return unsupported("network.allow_local_binding = false", "ports of its own loopback are open there", "drop the key");
  if (!policy.filesystem.volumes.empty())
    return unsupported("filesystem.volumes", "nothing of this machine is there", "use write_file");
  if (!policy.filesystem.devices.empty())
    return unsupported("filesystem.devices", "nothing of this machine is there", "drop the key");
  if (policy.limits.cpu_request || policy.limits.memory_request)
    return unsupported("limits.cpu_request and memory_request", format("the {} decides", traits.image), "drop the keys");
  if (policy.limits.idle_timeout || config.idle_timeout)
    return unsupported("limits.idle_timeout", "nothing watches whether a sandbox there is used", "set a lifetime");
  if (!config.transaction.empty())
    return unsupported("transactions", "they are overlays in mount namespaces of our own",
                       "use backend native, or drop `transaction`");
  if (!config.workspaces.empty() || !config.persistent_volume.empty() || config.on_stop == OnStop::kClean ||
      config.on_start == OnStart::kEmpty)
    return unsupported("workspaces, persistent_volume, on_stop and on_start", "they are about directories of this machine",
                       format("use on_stop of {}", traits.options));
  return {};
}

EnforcementReport report_remote(const Policy& policy, const CloudTraits& traits) {
  Report report;
  if (policy.mode == Mode::kReadOnly) report.none("mode", std::string(to_string(policy.mode)), kElsewhere);
  else report.full("mode", std::string(to_string(policy.mode)), std::string(traits.backend));
  const auto away = [&](const char* clause, const char* asked, std::string mechanism) {
    if (traits.isolation != Isolation::kNone) return report.full(clause, asked, std::move(mechanism));
    report.partial(clause, asked, std::move(mechanism), "whose machine it is nobody says: it may be this one");
  };
  away("filesystem.root", "nothing of this machine is there", format("a machine of {}", escaped(traits.host)));
  away("filesystem.secrets", "this machine's secrets out of sight", "not there");
  if (policy.filesystem.siblings == Siblings::kHidden)
    away("filesystem.siblings", "workspaces of this user's other sandboxes hidden", "not there");
  report.not_here("filesystem.write", format("write below {} only", escaped(traits.workspace)), kElsewhere);
  if (const auto own = std::ranges::count_if(policy.filesystem.entries, is_own); own > 0)
    report.none("filesystem.entries", format("{} rules for paths", own), kElsewhere);
  report.not_here("filesystem.tmp", "private, of a limited size", kElsewhere);
  if (policy.filesystem.caches == Caches::kWorkspace)
    report.not_here("filesystem.caches", "a layer over this machine's caches, kept for the workspace",
                    "nothing of this machine is there");
  if (!policy.filesystem.scratch.empty())
    report.not_here("filesystem.scratch", "writes below directories of this machine discarded", "nothing of this machine is there");
  if (policy.filesystem.protect != Protect::kNone)
    report.not_here("protect.existing", "control names read-only", "no broker looks into a machine elsewhere");
  report.partial("environment", "what the policy passes", "only what is set, included or passed by name leaves this machine",
                 format("what the {} sets is there, too", traits.image));
  report.partial("processes", "other processes invisible, out of reach", "a machine of its own", "the word of the service");
  report.partial("kill", "nothing outlives the sandbox or its front", "a variable marks the command's tree; the sandbox's lifetime",
                 "who drops the variable, or is there when this machine dies, lives until the sandbox ends");
  report.not_here("seccomp", "kernel surface reduced", "a kernel elsewhere, which is not shared with anything of ours");
  report_network(policy.network, traits, report);
  report_limits(policy.limits, traits, report);
  EnforcementReport clauses = report.take();
  const std::string_view word = traits.isolation == Isolation::kVm          ? "a virtual machine, by the word of the service"
                                : traits.isolation == Isolation::kContainer ? "a container, by the word of the service"
                                                                            : "nobody says what";
  policy::report_isolation(policy, traits.isolation, std::string(word), clauses);
  EnforcementClause timeout = command::timeout_clause(policy.limits);
  timeout.mechanism = traits.clock;
  clauses.push_back(std::move(timeout));
  return clauses;
}

}  // namespace belljar::remote
