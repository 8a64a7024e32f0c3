// What an engine holds of a policy. The report is made twice: from the plan, so that a policy that cannot be
// held is refused before a container exists, and lowered afterwards by what the running container shows of
// itself (the functions lower_*). It is never raised.
//
// No broker looks into a container, so rules for names that do not exist yet read `none`, and rules held by a
// mount `partial` where a rename on the host can take the mount off.
#include "backend/container/report.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/container/spec.h"
#include "backend/paths/host.h"
#include "backend/paths/plan.h"
#include "backend/paths/view.h"
#include "base/format.h"
#include "belljar/container.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/units.h"

namespace belljar::backend::container {
namespace {

using Clauses = EnforcementReport;

void full(Clauses& report, std::string clause, std::string asked, std::string mechanism) {
  report.push_back({std::move(clause), std::move(asked), std::move(mechanism), Enforced::kFull, {}});
}
void partial(Clauses& report, std::string clause, std::string asked, std::string mechanism, std::string detail) {
  report.push_back({std::move(clause), std::move(asked), std::move(mechanism), Enforced::kPartial, std::move(detail)});
}
// `best_effort`: a default that may read `none`; `require` makes it fatal.
void none(Clauses& report, std::string clause, std::string asked, std::string detail, bool best_effort = false) {
  report.push_back({std::move(clause), std::move(asked), {}, Enforced::kNone, std::move(detail), best_effort});
}

// Full where the engine is asked for what holds it.
void held(Clauses& report, bool asked_for, std::string clause, std::string asked, std::string mechanism) {
  if (asked_for) return full(report, std::move(clause), std::move(asked), std::move(mechanism));
  none(report, std::move(clause), std::move(asked), "the engine is not asked for what would hold it");
}

constexpr std::string_view kMode = "mode";
constexpr char kTerminal[] = "no terminal shared", kKeyring[] = "no keyring shared";
constexpr char kSurface[] = "kernel surface reduced, set-id bits refused";
constexpr char kNoBroker[] = "no broker looks into a container: only mounts over what exists hold";

std::string list(const std::vector<std::string>& items) {
  std::string text;
  for (std::size_t i = 0; i < items.size() && i < 4; ++i) text += (i == 0 ? "" : ", ") + escaped(items[i]);
  if (items.size() > 4) text += format(" and {} more", items.size() - 4);
  return text;
}

// Of the policy's own entries; the built-in list and our state directory are nobody's promise for names that do not exist.
bool is_named(const Policy& policy, const std::string& path) {
  return std::ranges::any_of(policy.filesystem.entries, [&](const FsEntry& entry) {
    return !entry.glob && entry.access == Access::kNone && entry.path == path && entry.kind != RuleKind::kDefaultSecret &&
           entry.origin.layer != "built-in";
  });
}

void report_secrets(const Policy& policy, const PathPlan& paths, Clauses& report) {
  std::string open;  // what is held less than a cover does
  for (const Gap& gap : paths.gaps) {
    if (gap.clause == "filesystem.hidden_again")
      open = format("{} lies in a writable directory: held only while it is not renamed on the host", escaped(gap.what));
    else if (gap.clause == kHiddenLink)
      open = format("{} is a link in a writable directory: what it leads to is covered, and the link can be replaced",
                    escaped(gap.what));
    else if (gap.clause == "filesystem.hidden_absent" && !is_named(policy, gap.what))
      open = format("{} does not exist yet: what is made there can be seen", escaped(gap.what));
    if (!open.empty()) break;
  }
  EnforcementClause clause{"filesystem.secrets", "this machine's secrets out of sight",
                           "not mounted; inside shared directories covered, mode 000",
                           open.empty() ? Enforced::kFull : Enforced::kPartial, std::move(open)};
  report.push_back(std::move(clause));
}

// Rules for names that nothing could be mounted over.
void report_gaps(const Policy& policy, const PathPlan& paths, Clauses& report) {
  std::vector<EnforcementClause> told;
  for (const Gap& gap : paths.gaps) {
    if (gap.clause == "filesystem.globs") none(told, gap.clause, format("rule for {}", escaped(gap.what)), kNoBroker);
    if (gap.clause == "filesystem.absent_readonly")
      none(told, gap.clause, format("{} read-only once it exists", escaped(gap.what)), kNoBroker);
    if (gap.clause == "filesystem.hidden_absent" && is_named(policy, gap.what))
      none(told, gap.clause, format("{} hidden once it exists", escaped(gap.what)), kNoBroker);
  }
  for (EnforcementClause& clause : told) {  // a link is one rule for two names
    if (std::ranges::find(report, clause) == report.end()) report.push_back(std::move(clause));
  }
}

void report_files(const Policy& policy, const ContainerOptions& options, const PathPlan& paths, const Spec& spec, Clauses& report) {
  full(report, "filesystem.root", format("the image {}; nothing else of this machine is there", escaped(options.image)),
       options.root == ContainerRoot::kReadOnly ? "mount namespace, read-only root"
                                                : "mount namespace; writes go with the container");
  // The workspace may have another name inside, and of a volume the plan knows the name that it has there.
  const bool bound = std::ranges::all_of(paths.writable, [&](const std::string& path) {
    return std::ranges::any_of(spec.binds,
                               [&](const Bind& bind) { return (bind.source == path || bind.target == path) && !bind.readonly; });
  });
  if (!paths.writable.empty())
    held(report, bound, "filesystem.write", format("write below {} only", list(paths.writable)), "bind mounts");
  if (!paths.readonly.empty())
    partial(report, "filesystem.readonly", format("{} read-only inside writable directories", list(paths.readonly)),
            "read-only bind mounts, ancestors pinned", "a file that is renamed over on the host takes its mount off");
  report_secrets(policy, paths, report);
  report_gaps(policy, paths, report);
}

void report_tmp(const Policy& policy, const ContainerOptions& options, const PathPlan& paths, const Spec& spec, Clauses& report) {
  if (!paths.view.private_dirs.empty()) {
    std::string others;  // a tmpfs of the caller's over one of these
    for (const auto& [path, text] : options.tmpfs) {
      if (std::ranges::find(paths.view.private_dirs, path, &PrivateDir::target) != paths.view.private_dirs.end())
        others += format("; {} as --tmpfs says ({})", escaped(path), text.empty() ? "no options" : escaped(text));
    }
    // That of /run is asked for so that the engine has none of its own there, and is no part of this promise.
    const bool asked = std::ranges::any_of(paths.view.private_dirs, [&](const PrivateDir& dir) {
      return std::ranges::find(spec.tmpfs, dir.target, &std::pair<std::string, std::string>::first) != spec.tmpfs.end();
    });
    held(report, asked, "filesystem.tmp", format("private, {} each{}", to_string(policy.filesystem.tmp_size), others),
         "tmpfs; /dev/shm is the engine's own");
  }
  if (policy.filesystem.caches != Caches::kOff)
    none(report, "filesystem.caches",
         policy.filesystem.caches == Caches::kWorkspace ? "a layer over this machine's caches, kept for the workspace"
                                                        : "a writable layer over this machine's caches",
         "a container has its image's own", true);
  if (!policy.filesystem.scratch.empty())
    none(report, "filesystem.scratch", format("writes below {} discarded", list(policy.filesystem.scratch)),
         "a container has no such layers: what it sees of them is read-only, but for what entries make writable", true);
}

void report_protect(const Policy& policy, const PathPlan& paths, Clauses& report) {
  if (policy.filesystem.protect == Protect::kNone || paths.writable.empty()) return;
  if (paths.protected_dirs > 0)
    partial(report, "protect.existing", format("{} control names read-only", paths.protected_dirs),
            "read-only bind mounts, ancestors pinned", "a file that is renamed over on the host takes its mount off");
  none(report, "protect.absent", "control names that do not exist yet", kNoBroker, true);
  none(report, "protect.nested", "control names below a writable root's top level", kNoBroker, true);
  if (keeps_git(policy, paths)) none(report, "protect.removal", std::string(kGitStays), kNoBroker, true);
}

void report_processes(const ContainerOptions& options, const User& user, bool rootless, std::size_t filter, Clauses& report) {
  const std::string engine = options.runtime.empty() ? "the engine's runtime" : format("runtime {}", escaped(options.runtime));
  if (rootless) full(report, "identity", "host root is never held", "rootless engine: uid 0 inside is its own user");
  else if (user.uid == 0)
    partial(report, "identity", "host root is never held", "no capabilities",
            "allow_root_uid: the command keeps host uid 0 for file access");
  else if (user.gid == 0)
    partial(report, "identity", "host root is never held", "no capabilities",
            "allow_root_uid: the command keeps host gid 0 for file access");
  else full(report, "identity", format("host id {}, no other", user.uid), "the engine's `User`; no new privileges");
  full(report, "processes", "other processes invisible, out of reach", "pid namespace of " + engine);
  full(report, "kill", "nothing outlives the sandbox or its front",
       "pid 1 ends with its line to us, and the pid namespace with it; we kill it when the engine is gone");
  if (options.capabilities.empty())
    full(report, "privileges", "no capability, no set-id gain", "all capabilities dropped, no-new-privileges");
  else
    partial(report, "privileges", "no capability, no set-id gain", "capabilities dropped, no-new-privileges",
            format("given back: {}", list(options.capabilities)));
  full(report, "terminal", kTerminal, "own session, devpts of the container's own");
  if (filter > 0) full(report, "keyring", kKeyring, "the policy's filter refuses key calls");
  else partial(report, "keyring", kKeyring, "the engine's default profile", "what it forbids is the engine's choice");
  if (filter > 0) full(report, "seccomp", kSurface, format("filter of {} instructions on each command", filter));
  else
    partial(report, "seccomp", kSurface, "the engine's default profile",
            "what it forbids is the engine's choice: the policy's filter would refuse what the capabilities are for");
}

// Names in the file system go by what is shared, abstract ones (unix(7)) by the network namespace.
void report_sockets(const Policy& policy, const ContainerOptions& options, const PathPlan& paths, Clauses& report) {
  constexpr char kAsked[] = "own sockets only";
  if (policy.network.allow_all_unix_sockets)
    return full(report, "network.unix_sockets", "all that are shown allowed", "no restriction asked for");
  if (policy.network.mode == NetMode::kHost && (options.network == "host" || options.network.starts_with("container:"))) {
    none(report, "network.unix_sockets", kAsked,
         format("the network {} is shared, and with it every abstract socket there", escaped(options.network)));
    return;
  }
  std::string shared;
  for (const backend::Bind& bind : paths.view.binds) {
    const bool within = std::ranges::any_of(paths.view.binds, [&](const backend::Bind& other) {
      return other.source.size() < bind.source.size() && is_under(bind.source, other.source);
    });
    if (!within) shared += (shared.empty() ? "" : ", ") + escaped(bind.source);
  }
  partial(report, "network.unix_sockets", kAsked, "network namespace; no directory of this machine but the shared ones",
          format("sockets in what is shared can be connected to, read-only or not: {}", shared));
}

void lower(std::string_view name, const std::string& detail, EnforcementReport& report) {
  const auto clause = std::ranges::find(report, name, &EnforcementClause::clause);
  if (clause == report.end()) return;
  if (clause->enforced == Enforced::kFull) clause->enforced = Enforced::kPartial;
  clause->detail += (clause->detail.empty() ? "" : "; ") + detail;
}

// In the place of the clause of that name.
void put(EnforcementClause lowered, EnforcementReport& report) {
  const auto clause = std::ranges::find(report, lowered.clause, &EnforcementClause::clause);
  if (clause != report.end()) *clause = std::move(lowered);
  else report.push_back(std::move(lowered));
}

}  // namespace

EnforcementReport report_container(const Policy& policy, const ContainerOptions& options, const PathPlan& paths, const User& user,
                                   bool rootless, const Spec& spec) {
  Clauses report;
  const std::size_t filter = spec.filter.size();
  if (options.capabilities.empty() && filter > 0)
    full(report, std::string(kMode), std::string(to_string(policy.mode)), "container");
  else
    partial(report, std::string(kMode), std::string(to_string(policy.mode)), "container",
            "commands have capabilities, or no filter of the policy's");
  report_files(policy, options, paths, spec, report);
  report_tmp(policy, options, paths, spec, report);
  report_protect(policy, paths, report);
  report_processes(options, user, rootless, filter, report);
  if (policy.network.mode == NetMode::kNone)
    held(report, spec.network == "none", "network", "none", "network namespace with loopback only");
  else if (policy.network.mode == NetMode::kProxy)
    held(report, spec.network == "none" && !spec.sockets.empty(), "network", "no route out but the proxy",
         "network namespace with loopback only; listening sockets made in it by pid 1, passed out before any command runs");
  else
    held(report, spec.network == options.network, "network", format("the engine's network {}", escaped(options.network)),
         "no restriction asked for");
  report_sockets(policy, options, paths, report);
  return report;
}

void report_engine(bool maps_ids, bool seccomp, EnforcementReport& report) {
  for (EnforcementClause& clause : report) {
    if (clause.clause == "identity" && maps_ids) clause.mechanism += "; the engine's mapping of ids is off for it";
    if (clause.clause == "keyring" && !seccomp && clause.enforced != Enforced::kFull)
      clause = {clause.clause, clause.asked, {}, Enforced::kNone, "the engine says that it has no profile on", true};
    if (clause.clause != "seccomp") continue;
    if (seccomp && clause.enforced == Enforced::kFull) clause.mechanism += ", on top of the engine's default profile";
    if (!seccomp && clause.enforced != Enforced::kFull)
      clause = {clause.clause, clause.asked, {}, Enforced::kNone, "the engine says that it has no profile on", true};
  }
}

void lower_root(const std::vector<std::string>& unasked, EnforcementReport& report) {
  if (unasked.empty()) return;
  put({"filesystem.root", "the image, and nothing else of this machine", "mount namespace", Enforced::kPartial,
       "the engine's settings also show " + list(unasked)},
      report);
  lower("filesystem.siblings", "the engine's settings also show " + list(unasked), report);
}

void lower_tmp(const std::vector<std::string>& larger, EnforcementReport& report) {
  if (larger.empty()) return;
  lower("filesystem.tmp", "the engine has more room, or as much as there is memory, at " + list(larger), report);
}

void lower_status(const InsideStatus& status, const Spec& spec, EnforcementReport& report) {
  if (status.pid.value_or(1) != 1) {
    const std::string detail = format("the engine gave it no pid namespace: our process is number {} there", *status.pid);
    lower("processes", detail, report);
    lower("kill", detail, report);
  }
  if (spec.capabilities.empty() && status.capabilities.value_or(0) != 0)
    lower("privileges", format("the engine left it capabilities ({:x})", *status.capabilities), report);
  if (status.no_new_privs.value_or(1) != 1) lower("privileges", "the engine did not set no-new-privileges", report);
  if (status.uid && status.gid && format("{}:{}", *status.uid, *status.gid) != spec.user)
    lower("identity", format("the engine runs it as {}:{}", *status.uid, *status.gid), report);
  if (!status.own_terminals.value_or(true)) lower("terminal", "the engine shows this machine's terminals at /dev/pts", report);
}

void lower_filter(EnforcementReport& report) {
  lower(kMode, "the policy's filter is not in force", report);
  const EnforcementClause lowered{
      "seccomp", kSurface, {}, Enforced::kNone, "pid 1 cannot install the policy's filter; the engine's profile is its own choice"};
  put(lowered, report);
  put({"keyring", kKeyring, "the engine's profile", Enforced::kPartial,
       "the policy's filter, which refuses key calls, is not in force"},
      report);
}

void lower_transparent(EnforcementReport& report, int errnum) {
  const auto clause = std::ranges::find(report, "network.transparent", &EnforcementClause::clause);
  if (clause == report.end()) return;
  clause->best_effort = true;
  clause->enforced = errnum == 0 ? Enforced::kPartial : Enforced::kNone;
  clause->mechanism = errnum == 0 ? "resolver on 127.0.0.53, names as addresses of 127.19.0.0/16, listeners on their ports" : "";
  clause->detail =
      errnum == 0
          ? "ports 80, 443 and those that rules name, of hosts that are asked for by name; plain addresses have no route. A "
            "server inside finds these ports in use: --publish the port, or --transparent=false"
          : format(
                "pid 1 may not listen on ports below 1024 inside (errno {}): programs that know nothing of the proxy "
                "find no network",
                errnum);
}

void report_unheld(EnforcementReport& report) {
  const auto kill = std::ranges::find(report, "kill", &EnforcementClause::clause);
  if (kill == report.end()) return;
  kill->enforced = Enforced::kPartial;
  kill->detail = "an engine that is killed may leave its containers running until it is back";
}

void report_limits(const Policy& policy, bool memory, bool cpu, bool pids, EnforcementReport& report) {
  const auto add = [&](bool asked, bool held, const char* clause, std::string value) {
    if (asked && held) full(report, clause, std::move(value), "the engine's cgroup");
    else if (asked) none(report, clause, std::move(value), "the engine says that it cannot limit this (cgroup controllers)");
  };
  const Limits& limits = policy.limits;
  add(limits.memory.has_value(), memory, "limits.memory", limits.memory ? to_string(*limits.memory) : "");
  add(limits.cpus.has_value(), cpu, "limits.cpus", limits.cpus ? format("{}", *limits.cpus) : "");
  add(limits.pids.has_value(), pids, "limits.pids", limits.pids ? format("{}", *limits.pids) : "");
  if (limits.open_files) full(report, "limits.open_files", format("{}", *limits.open_files), "rlimit");
  if (limits.file_size) full(report, "limits.file_size", to_string(*limits.file_size), "rlimit");
  if (limits.output_bytes)
    full(report, "limits.output_bytes", to_string(*limits.output_bytes),
         limits.output_action == OutputAction::kKill ? "session: KILL of the command's tree"
                                                     : "session: the rest is read, counted and dropped");
  if (limits.disk)
    partial(report, "limits.disk", to_string(*limits.disk), "rlimit on each file",
            "nothing counts the growth of the workspace by many files here");
}

}  // namespace belljar::backend::container
