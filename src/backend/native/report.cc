#include "backend/native/report.h"

#include <sched.h>
#include <sys/mount.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/native/local_ports.h"
#include "backend/native/report_builder.h"
#include "backend/native/siblings.h"
#include "backend/native/tree_draft.h"
#include "backend/paths/host.h"
#include "backend/paths/live_rules.h"
#include "backend/paths/plan.h"
#include "backend/paths/view.h"
#include "base/format.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/units.h"
#include "kernel/landlock.h"
#include "kernel/seccomp.h"
#include "launch/plan.h"
#include "policy/paths.h"

namespace belljar::backend {
namespace {

std::string list(const std::vector<std::string>& items) {
  std::string text;
  for (std::size_t i = 0; i < items.size() && i < 4; ++i) text += (i == 0 ? "" : ", ") + escaped(items[i]);
  if (items.size() > 4) text += format(" and {} more", items.size() - 4);
  return text;
}

constexpr std::string_view kNoListener =
    "needs the broker, which judges no file calls here: another sandbox has the one seccomp listener, or allow_nested_userns lets "
    "the "
    "command rearrange its mounts";
constexpr char kAtCommit[] = "judged at commit: until then the transaction keeps what is written to itself";
constexpr char kBroker[] = "broker: the call is performed outside, by name at any depth";

bool has_flags(const launch::Plan& plan, std::uint64_t flags) { return (plan.clone_flags & flags) == flags; }
bool has_op(const launch::Plan& plan, launch::MountOpKind kind) {
  return std::ranges::find(plan.mounts, kind, &launch::MountOp::kind) != plan.mounts.end();
}

Requirement mount_namespace(const launch::Plan& plan) { return {has_flags(plan, CLONE_NEWNS), "a mount namespace"}; }
Requirement pid_namespace(const launch::Plan& plan) { return {has_flags(plan, CLONE_NEWPID), "a pid namespace"}; }
Requirement own_proc(const launch::Plan& plan) { return {has_op(plan, launch::MountOpKind::kProc), "a /proc of its own"}; }
Requirement broker(const Prepared& prepared) {
  return {prepared.file_rules != nullptr && prepared.plan.seccomp_listener &&
              prepared.plan.seccomp_spec.file_calls >= kernel::FileCalls::kWrites,
          "file calls that the broker judges"};
}
// What is written stays in the layers of a transaction, and its commit judges.
bool at_commit(const Prepared& prepared) {
  return prepared.file_rules != nullptr && prepared.plan.seccomp_listener &&
         prepared.plan.seccomp_spec.file_calls == kernel::FileCalls::kLinks;
}

// The host's tree is frozen, or left behind.
Requirement closed_tree(const launch::Plan& plan, const View& view) {
  const auto closes = [&](const launch::MountOp& op) {
    if (!view.whole_root) return op.kind == launch::MountOpKind::kPivot;
    return op.kind == launch::MountOpKind::kSetAttr && op.target == "/" && (op.flags & launch::kRecursive) != 0 &&
           (op.attr_set & MOUNT_ATTR_RDONLY) != 0;
  };
  return {std::ranges::any_of(plan.mounts, closes), view.whole_root ? "the host's tree read-only" : "a root of its own"};
}

// Something is attached at `path`, and the start ends where that fails.
bool attaches(const launch::Plan& plan, const View& view, const std::string& path) {
  const std::string target = view.whole_root ? path : join(join(kStage, "root"), path);
  return std::ranges::any_of(plan.mounts, [&](const launch::MountOp& op) {
    return op.kind == launch::MountOpKind::kAttach && op.target == target && (op.flags & launch::kOptional) == 0;
  });
}

template <typename Range, typename PathOf>
Requirement attached(const launch::Plan& plan, const View& view, const Range& range, PathOf path_of, std::string_view name) {
  const auto there = [&](const auto& one) { return attaches(plan, view, path_of(one)) || is_hidden(view, path_of(one)); };
  return {std::ranges::all_of(range, there), name};
}

// What is read-only inside writable directories.
Requirement mounted(const launch::Plan& plan, const PathPlan& paths) {
  const auto itself = [](const std::string& path) { return path; };
  return attached(plan, paths.view, paths.readonly, itself, "a mount over each of them");
}

Requirement covers(const launch::Plan& plan, const PathPlan& paths) {
  const View& view = paths.view;
  const auto covered = [&](const std::string& path) { return attaches(plan, view, path); };
  const auto gone = [&](const std::string& path) { return covered(path) || is_hidden(view, path); };
  const auto masked = [&](const auto& mask) { return gone(mask.first); };
  return {std::ranges::all_of(view.hide_dirs, covered) && std::ranges::all_of(paths.ways, covered) &&
              std::ranges::all_of(paths.emptied, gone) && std::ranges::all_of(view.hide_files, covered) &&
              std::ranges::all_of(view.masks, masked),
          "a mount over each hidden name"};
}

void report_caches(const PathPlan& paths, const launch::Plan& plan, ReportBuilder& report) {
  const std::vector<Requirement> parts = {mount_namespace(plan), {has_op(plan, launch::MountOpKind::kOverlay), "an overlay"}};
  const View& view = paths.view;
  std::vector<std::string> names;
  for (const Cache& cache : view.caches) {
    if (!cache.scratch) names.push_back(cache.path);
  }
  const std::string kept = format("writes below {} kept for the workspace's next command", names.empty() ? "caches" : list(names));
  if (view.kept_pool) report.require(parts, "filesystem.caches", kept, "an overlay each, its layer below the state directory");
  else if (!view.not_kept.empty() && names.empty()) report.later("filesystem.caches", kept, view.not_kept);
  else if (!view.not_kept.empty())
    report.partial("filesystem.caches", kept, "overlay on the private tmpfs", format("discarded this time: {}", view.not_kept));
  else if (!names.empty())
    report.require(parts, "filesystem.caches", format("writes below {} discarded", list(names)), "overlay on the private tmpfs");
}

// What persists of a directory that is scratch is what an entry makes writable below it.
void report_scratch(const Policy& policy, const PathPlan& paths, const launch::Plan& plan, ReportBuilder& report) {
  if (policy.filesystem.scratch.empty()) return;
  const auto is_layer_of = [](const std::string& path) {
    return [&path](const Cache& cache) { return cache.scratch && policy::is_within(path, cache.path); };
  };
  std::vector<std::string> layers, kept, readonly;
  for (const Cache& cache : paths.view.caches) {
    if (cache.scratch) layers.push_back(cache.path);
  }
  for (const std::string& path : paths.writable) {
    if (std::ranges::any_of(paths.view.caches, is_layer_of(path))) kept.push_back(path);
  }
  for (const Gap& gap : paths.gaps) {
    if (gap.clause == "filesystem.scratch") readonly.push_back(gap.what);
  }
  if (layers.empty() && readonly.empty()) return;  // entries for the same directories say more
  const std::string asked = format("writes below {} discarded, {}", list(layers.empty() ? readonly : layers),
                                   kept.empty() ? "none kept" : format("but for {}, which are kept", list(kept)));
  const auto itself = [](const Cache& cache) { return cache.path; };
  std::vector<Cache> required;
  std::ranges::copy_if(paths.view.caches, std::back_inserter(required), &Cache::required);
  const std::vector<Requirement> parts = {mount_namespace(plan),
                                          {has_op(plan, launch::MountOpKind::kOverlay), "an overlay"},
                                          attached(plan, paths.view, required, itself, "a layer over each of them")};
  if (!layers.empty() && (readonly.empty() || !std::ranges::all_of(parts, &Requirement::there)))
    return report.require(parts, "filesystem.scratch", asked, "overlay on the private tmpfs");
  report.partial("filesystem.scratch", asked, layers.empty() ? "read-only" : "overlay on the private tmpfs",
                 format("{} has no layer here, and is not written to at all", list(readonly)));
}

void report_files(const Policy& policy, const PathPlan& paths, const Prepared& prepared, bool brokered, ReportBuilder& report) {
  const bool landlock = prepared.plan.landlock.enabled && prepared.plan.landlock.handled_fs != 0;
  // What the broker performs is outside of the command's Landlock domain: one lock.
  const std::string second = landlock && !brokered ? " and Landlock" : "";
  const launch::Plan& plan = prepared.plan;
  const View& view = paths.view;
  const std::vector<Requirement> tree = {mount_namespace(plan), closed_tree(plan, view)};
  report.require(tree, "filesystem.root",
                 view.whole_root ? "the host's tree read-only" : format("only {} readable", list(paths.readable)),
                 view.whole_root ? "read-only mounts" + second : "a tree of its own" + second);
  std::vector<std::string> left_out;
  for (const Gap& gap : paths.gaps) {
    if (gap.clause == "filesystem.absent_writable") left_out.push_back(gap.what);
  }
  if (!paths.writable.empty() || !left_out.empty()) {
    std::string asked = paths.writable.empty() ? "no writing" : format("write below {} only", list(paths.writable));
    if (!left_out.empty()) asked += format("; of the profile's directories {} do not exist and are left out", list(left_out));
    report.require(tree, "filesystem.write", std::move(asked), "mounts" + second);
  }
  if (!paths.readonly.empty()) {
    const std::string asked = format("{} read-only inside writable directories", list(paths.readonly));
    const std::vector<Requirement> parts = {mount_namespace(plan), mounted(plan, paths)};
    const auto again = std::ranges::find(paths.gaps, "filesystem.readonly_again", &Gap::clause);
    if (brokered || again == paths.gaps.end() || !std::ranges::all_of(parts, &Requirement::there))
      report.require(parts, "filesystem.readonly", asked,
                     brokered ? "read-only mounts, and live rules for what is put in place anew"
                              : "read-only mounts (Landlock cannot carve holes: one lock)");
    else
      report.partial("filesystem.readonly", asked, "read-only mounts (one lock)",
                     format("{}: held only while the host puts nothing else in its place", escaped(again->what)));
  }
  if (paths.hidden > 0) {
    const auto missing = std::find_if(paths.gaps.begin(), paths.gaps.end(), [&](const Gap& gap) {
      const bool hidden = gap.clause == "filesystem.hidden_absent" || gap.clause == "filesystem.hidden_again";
      return hidden && !(brokered && is_held_by_rules(paths, gap));
    });
    const bool by_rules = std::ranges::any_of(paths.gaps, [&](const Gap& gap) {
      return gap.clause == "filesystem.hidden_absent" && brokered && is_held_by_rules(paths, gap);
    });
    const auto again = std::ranges::find(paths.gaps, "filesystem.hidden_again", &Gap::clause);
    const std::string asked = format("{} names hidden", paths.hidden);
    const std::string lock = brokered ? "(one lock)" : "(one lock; changes fail with what mounts say: EROFS, EBUSY, EISDIR, EXDEV)";
    const std::vector<Requirement> parts = {mount_namespace(plan), covers(plan, paths)};
    if (!std::ranges::all_of(parts, &Requirement::there)) report.require(parts, "filesystem.secrets", asked, "");
    else if (missing == paths.gaps.end() && by_rules)
      report.partial("filesystem.secrets", asked, "masks of mode 000, and live rules for names that may be made",
                     "what live rules hold can be seen and started by name: filesystem.hidden_absent");
    else if (missing == paths.gaps.end() && again != paths.gaps.end())
      report.partial("filesystem.secrets", asked, "masks of mode 000, and live rules for what is put in place anew",
                     format("{} lies in a writable directory: once the host has put another in its place, that can be seen and "
                            "started by name; it cannot be opened",
                            escaped(again->what)));
    else if (missing == paths.gaps.end())
      report.full("filesystem.secrets", asked, "masks over each name, there or not: EACCES, or absent " + lock);
    else
      report.partial("filesystem.secrets", asked, "masks and covers of mode 000 " + lock,
                     format("{} lies in a writable directory or under `/`: held only while it is not renamed or made on the host",
                            escaped(missing->what)));
  }
  for (const Gap& gap : paths.gaps) {
    if (!is_held_by_rules(paths, gap) || has_mount(gap) || (!brokered && gap.clause == "filesystem.hidden_absent")) continue;
    EnforcementClause clause = held_clause(gap, Mounts::kOwn);
    if (brokered) report.add(std::move(clause));
    else report.none(std::move(clause.clause), std::move(clause.asked), std::string(kNoListener));
  }
  if (!paths.view.private_dirs.empty()) {
    std::vector<std::string> names;
    for (const PrivateDir& dir : view.private_dirs) {
      const auto is_it = [&](const std::string& path) { return path == dir.target; };
      if (std::ranges::none_of(paths.ways, is_it) && std::ranges::none_of(paths.emptied, is_it)) names.push_back(dir.target);
    }
    const auto target = [](const PrivateDir& dir) { return dir.target; };
    report.require({mount_namespace(plan),
                    {has_op(plan, launch::MountOpKind::kStage), "a tmpfs"},
                    attached(plan, view, view.private_dirs, target, "a mount over each of them")},
                   "filesystem.tmp", format("private {}, {} together", list(names), to_string(policy.filesystem.tmp_size)),
                   "one tmpfs of that size");
  }
  report_caches(paths, plan, report);
  report_scratch(policy, paths, plan, report);
}

void report_protect_by_mounts(const Policy& policy, const PathPlan& paths, const launch::Plan& plan, ReportBuilder& report) {
  if (paths.protected_dirs > 0) {
    const auto weak = std::find_if(paths.gaps.begin(), paths.gaps.end(),
                                   [](const Gap& gap) { return gap.clause == "protect.files" || gap.clause == "protect.links"; });
    const std::string asked = format("{} control names read-only", paths.protected_dirs);
    if (weak == paths.gaps.end())
      report.require({mount_namespace(plan), mounted(plan, paths)}, "protect.existing", asked,
                     "read-only mounts over whole directories, ancestors pinned");
    else
      report.partial("protect.existing", asked, "read-only mounts, ancestors pinned",
                     format("{} is a file or a link: a rename over it on the host takes the mount off", escaped(weak->what)));
  }
  report.later("protect.absent", "control names that do not exist yet", std::string(kNoListener));
  report.later("protect.nested", "control names below a writable root's top level", std::string(kNoListener));
  if (keeps_git(policy, paths)) report.later("protect.removal", std::string(kGitStays), std::string(kNoListener));
}

void report_protect(const Policy& policy, const PathPlan& paths, const Prepared& prepared, ReportBuilder& report) {
  if (policy.filesystem.protect == Protect::kNone || paths.writable.empty()) return;
  const std::string mounts = paths.protected_dirs > 0 ? "; existing directories at a root also by read-only mounts" : "";
  if (at_commit(prepared)) {
    report.full("protect.existing", "what git, agents and editors run stays inert", std::string(kAtCommit) + mounts);
    report.full("protect.absent", "control names that do not exist yet", kAtCommit);
    report.full("protect.nested", "control names below a writable root's top level", kAtCommit);
    return;
  }
  if (!broker(prepared).there) return report_protect_by_mounts(policy, paths, prepared.plan, report);
  report.full("protect.existing", "what git, agents and editors run stays inert",
              "broker: git's control files judged by content, agent and editor names read-only" + mounts);
  report.full("protect.absent", "control names that do not exist yet", kBroker);
  report.full("protect.nested", "control names below a writable root's top level", kNestedByBroker);
  if (keeps_git(policy, paths)) report.partial("protect.removal", std::string(kGitStays), kBroker, std::string(kAgainstSlips));
}

void report_identity(const Workplace& place, const launch::Plan& plan, ReportBuilder& report) {
  const bool mapped = plan.identity == launch::Identity::kRootMapped;
  const Requirement users{mapped || has_flags(plan, CLONE_NEWUSER), "a user namespace"};
  if (plan.outside_uid == 0)
    return report.partial("identity", "host root is never held", "user namespace without capabilities",
                          "allow_root_uid: the command keeps host uid 0 for file access");
  if (place.owner)
    report.require({users}, "identity",
                   format("host root is never held: the command is host id {}, who owns the workspace", plan.outside_uid),
                   "user namespace; this file system has no idmapped mounts");
  else if (mapped)
    report.require({users}, "identity",
                   format("host root is never held: inside {} is host id {}", plan.inside_uid, plan.outside_uid),
                   "idmapped mounts, user namespace");
  else report.require({users}, "identity", format("host id {}, no other", plan.outside_uid), "user namespace");
}

// /proc and the keyring may still be lowered by what the start says of them: runtime/enforcement.
void report_processes(const Policy& policy, const launch::Plan& plan, ReportBuilder& report) {
  report.require({pid_namespace(plan), own_proc(plan), mount_namespace(plan)}, "processes",
                 "other processes invisible, out of reach",
                 (plan.landlock.scoped & kernel::landlock::kScopeSignal) != 0 ? "pid namespace, fresh /proc, Landlock scope"
                                                                              : "pid namespace, fresh /proc");
  report.require({pid_namespace(plan)}, "kill", "nothing outlives the command or its front", "pid namespace, PDEATHSIG");
  report.require({dropped(plan)}, "privileges", "no capability, no set-id gain",
                 "empty capability sets, locked securebits, no_new_privs, nosuid");
  constexpr char kSurface[] = "kernel surface reduced, set-id bits refused";
  const std::string program = format("filter of {} instructions", plan.seccomp.size());
  if (!plan.seccomp.empty() && policy.allow_nested_userns)
    report.partial("seccomp", kSurface, program, "allow_nested_userns: the calls that make namespaces and mounts pass");
  else report.require({filter(plan)}, "seccomp", kSurface, program);
  report.require({filter(plan), {has_op(plan, launch::MountOpKind::kDevpts), "a devpts of its own"}}, "terminal",
                 "no terminal shared", "own session, own devpts, TIOCSTI and TIOCLINUX refused");
  report.require({dropped(plan), filter(plan)}, std::string(launch::kKeyringClause), "no keyring shared",
                 "empty session keyring, key calls refused");
}

// Of sockets of the host that are shown through an overlay, where the kernel finds nobody.
std::string shown_through_overlays(const View& view) {
  std::vector<std::string> folders;
  for (const auto& [folder, mask] : view.masks) folders.push_back(folder);
  return folders.empty() ? std::string() : "sockets below " + list(folders) + ", shown through an overlay, ";
}

void report_sockets(const Policy& policy, const PathPlan& paths, const Prepared& prepared, ReportBuilder& report) {
  const std::vector<std::string>& listed = policy.network.allow_unix_sockets;
  constexpr char kAllShown[] = "all allowed but hidden ones";
  const std::string through = shown_through_overlays(paths.view);
  switch (prepared.plan.seccomp_spec.unix_sockets) {
    case kernel::UnixSockets::kStream:
    case kernel::UnixSockets::kAll:
      if (!policy.network.allow_all_unix_sockets)
        return report.none("network.unix_sockets", "own sockets only", "the filter lets every socket be connected to");
      if (through.empty()) return report.full("network.unix_sockets", kAllShown, "hidden ones by the mounts over them");
      return report.partial("network.unix_sockets", kAllShown, "hidden ones by the mounts over them",
                            through + "cannot be connected to without the broker");
    case kernel::UnixSockets::kAnyJudged:
      if (through.empty() || !prepared.plan.seccomp_listener)
        return report.require({filter(prepared.plan), {prepared.plan.seccomp_listener, "a listener for the filter"}},
                              "network.unix_sockets", kAllShown, "hidden ones by the mounts over them");
      return report.partial("network.unix_sockets", kAllShown, "hidden ones by the mounts over them, connect by the broker",
                            through + (prepared.plan.identity == launch::Identity::kRootMapped
                                           ? "get no datagrams, and as root no connection that is closed to others"
                                           : "get no datagrams"));
    case kernel::UnixSockets::kPairs:
      report.partial("network.unix_sockets", "own sockets only", "seccomp: socket pairs only",
                     "no socket with a path or a name can be made: " + std::string(kNoListener));
      if (!listed.empty())
        report.none("network.allow_unix_sockets", format("{} can be connected to", list(listed)), std::string(kNoListener));
      return;
    case kernel::UnixSockets::kBrokered:
      report.require({filter(prepared.plan), {prepared.plan.seccomp_listener, "a listener for the filter"}}, "network.unix_sockets",
                     listed.empty() ? "own sockets only" : format("own sockets, and {}", list(listed)),
                     "connect judged by the broker on its own copy of the address; datagram sockets refused");
  }
}

void report_network(const Policy& policy, const PathPlan& paths, const Prepared& prepared, int abi, ReportBuilder& report) {
  const launch::Plan& plan = prepared.plan;
  const Requirement apart{has_flags(plan, CLONE_NEWNET), "a network namespace"};
  if (policy.network.mode == NetMode::kProxy)
    report.require({apart, {!plan.sockets.empty(), "the proxy's socket"}}, "network", "no route out but the proxy",
                   "network namespace with loopback only; one listening socket, passed out");
  else if (policy.network.mode == NetMode::kNone)
    report.require({apart}, "network", "none", "network namespace with loopback only");
  else report.require({{!apart.there, "the host's network"}}, "network", "the host's", "no restriction asked for");
  report_sockets(policy, paths, prepared, report);
  if (!policy.network.allow_local_binding.value_or(prepared.own_network))
    report.add(local_binding_clause(plan.seccomp_spec.local_ports, abi));
}

void report_landlock(const Policy& policy, const Prepared& prepared, int abi, ReportBuilder& report) {
  const std::string by = format("Landlock, ABI {}", abi);
  constexpr char kAsked[] = "second lock on paths";
  if (abi == 0) report.partial("landlock", kAsked, "mounts only", "this kernel has no Landlock");
  else if (policy.allow_nested_userns)
    report.partial("landlock", kAsked, "mounts only", "under Landlock no program could mount in a namespace of its own");
  else if (broker(prepared).there || at_commit(prepared))
    report.partial("landlock", kAsked, by, "calls that the broker performs are held by mounts and rules alone");
  else
    report.require({{prepared.plan.landlock.enabled && prepared.plan.landlock.handled_fs != 0, "Landlock rules"}}, "landlock",
                   kAsked, by);
}

}  // namespace

EnforcementReport report_native(const Host& host, const Policy& policy, const Workplace& place, const PathPlan& paths,
                                const Prepared& prepared) {
  const launch::Plan& plan = prepared.plan;
  ReportBuilder report;
  report.require({mount_namespace(plan), pid_namespace(plan), dropped(plan), filter(plan)}, "mode",
                 std::string(to_string(policy.mode)), "namespaces, mounts, Landlock, seccomp");
  const bool brokered = broker(prepared).there;
  report_files(policy, paths, prepared, brokered, report);
  const bool covered = mount_namespace(plan).there && covers(plan, paths).there;
  if (auto clause = siblings_clause(place, paths, covered, "mounts over each of them")) report.add(*std::move(clause));
  report_protect(policy, paths, prepared, report);
  report_identity(place, plan, report);
  report_processes(policy, plan, report);
  report_network(policy, paths, prepared, host.landlock_abi(), report);
  report_landlock(policy, prepared, host.landlock_abi(), report);
  if (policy.enable_weaker_nested_sandbox)
    report.partial("nested", "run inside another sandbox", "best effort",
                   "a /proc mount that the outer sandbox refuses is left out");
  if (policy.allow_nested_userns)
    report.partial("nested_userns", "programs may make user namespaces", "seccomp",
                   "the kernel surface of namespaces is open to the command");
  return report.take();
}

EnforcementReport report_full_access(const launch::Plan& plan) {
  ReportBuilder report;
  report.require({pid_namespace(plan), own_proc(plan)}, "mode", "danger-full-access", "no file and no network rule asked for");
  report.require({pid_namespace(plan)}, "kill", "nothing outlives the command or its front", "pid namespace, PDEATHSIG");
  if (has_flags(plan, CLONE_NEWUSER))
    report.partial("privileges", "the caller's own", "user namespace for the kill guarantee",
                   "set-id programs such as sudo do not gain privileges inside");
  return report.take();
}

EnforcementReport report_external(const launch::Plan& plan) {
  ReportBuilder report;
  report.later("mode", "external-sandbox",
               "nothing is enforced but timeouts and output caps: the caller says another sandbox does");
  if (plan.subreaper)
    report.partial("kill", "nothing outlives the command or its front", "subreaper and sweep", "a fork bomb can outrun the sweep");
  else report.none("kill", "nothing outlives the command or its front", "nothing of the command is found when it leaves its group");
  return report.take();
}

}  // namespace belljar::backend
