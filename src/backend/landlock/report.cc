#include "backend/landlock/report.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/native/local_ports.h"
#include "backend/native/report_builder.h"
#include "backend/native/siblings.h"
#include "backend/paths/host.h"
#include "backend/paths/live_rules.h"
#include "backend/paths/plan.h"
#include "base/format.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "broker/file_rules.h"
#include "kernel/landlock.h"
#include "kernel/seccomp.h"
#include "launch/plan.h"
#include "policy/backends.h"

namespace belljar::backend {
namespace {

constexpr char kBroker[] = "broker: the call is performed outside, by name at any depth";
constexpr char kTier[] = "Landlock and seccomp, no namespaces";
constexpr char kAllShown[] = "all allowed but hidden ones";
constexpr char kWritesNothing[] = "nothing written outside";

Requirement domain(const launch::Plan& plan) {
  return {plan.landlock.enabled && plan.landlock.handled_fs != 0, "a Landlock domain"};
}
Requirement judged(const Prepared& prepared) {
  return {prepared.file_rules != nullptr && prepared.file_rules->holds_paths() && prepared.plan.seccomp_listener &&
              prepared.plan.seccomp_spec.file_calls != kernel::FileCalls::kDirect,
          "file calls that the broker judges"};
}

// Read and run by Landlock, written and listed by the broker or, without it, nowhere but in writable directories.
void report_siblings(const Workplace& place, const PathPlan& paths, const Prepared& prepared, ReportBuilder& report) {
  const bool brokered = prepared.file_rules != nullptr;
  const bool held = domain(prepared.plan).there && (!brokered || judged(prepared).there);
  const char* const mechanism = brokered
                                    ? "Landlock: allowed piece by piece around them; broker: what is written, listed, moved, linked"
                                    : "Landlock: allowed piece by piece around them";
  if (auto clause = siblings_clause(place, paths, held, mechanism,
                                    "names, sizes and times of what lies in them can be asked for, and the user's own files there "
                                    "be given another owner, times and extended attributes"))
    report.add(*std::move(clause));
}

// As a clause that is never full reads where even its locks are missing.
void weak(const std::vector<Requirement>& parts, std::string clause, std::string asked, std::string mechanism, std::string detail,
          ReportBuilder& report) {
  for (const Requirement& part : parts) {
    if (!part.there) return report.require(parts, std::move(clause), std::move(asked), "");
  }
  report.partial(std::move(clause), std::move(asked), std::move(mechanism), std::move(detail));
}

void report_files_by_broker(const Policy& policy, const PathPlan& paths, const Prepared& prepared, int abi, ReportBuilder& report) {
  const std::vector<Requirement> both = {domain(prepared.plan), judged(prepared)};
  weak(both, "filesystem.root", kWritesNothing, format("broker for what is written by name; Landlock, ABI {}", abi),
       "owner, times and extended attributes (access control lists, too) of the caller's own files can still be changed", report);
  if (paths.hidden > 0) {
    const bool all = prepared.file_rules->every_read_matters();
    report.require(
        both, "filesystem.secrets", format("{} names hidden", paths.hidden),
        all ? "broker: every open is performed outside; Landlock allows piece by piece around those outside writable "
              "directories"
            : "Landlock: what is read and run is allowed piece by piece around them; broker: what is listed, written, moved, "
              "linked");
    report.partial(
        "filesystem.secrets_metadata", "not even seen", "",
        "that they exist, their sizes, times and link texts can be asked for (stat, readlink), and their owner can change "
        "times, owner and extended attributes");
  }
  for (const Gap& gap : paths.gaps) {
    if (gap.clause != "filesystem.hidden_absent" && !has_mount(gap) && is_held_by_rules(paths, gap))
      report.add(held_clause(gap, Mounts::kNone));
  }
  const std::vector<Requirement> broker = {judged(prepared)};
  if (!paths.readonly.empty())
    report.require(broker, "filesystem.readonly",
                   format("{} read-only inside writable directories", escaped(paths.readonly.front())), kBroker);
  if (policy.filesystem.protect == Protect::kNone || paths.writable.empty()) return;
  report.require(broker, "protect.existing", "what git, agents and editors run stays inert",
                 "broker: git's control files judged by content, agent and editor names read-only");
  report.require(broker, "protect.absent", "control names that do not exist yet", kBroker);
  report.require(broker, "protect.nested", "control names below a writable root's top level", kNestedByBroker);
  if (keeps_git(policy, paths)) report.partial("protect.removal", std::string(kGitStays), kBroker, std::string(kAgainstSlips));
}

// Another sandbox has the one seccomp listener, or yama keeps callers' memory from us.
void report_files_by_landlock(const Policy& policy, const Workplace& place, const PathPlan& paths, const Prepared& prepared,
                              int abi, ReportBuilder& report) {
  const std::string needs = place.listener ? "needs the broker, which kernel.yama.ptrace_scope keeps from reading what is asked"
                                           : "needs the broker: another sandbox has the one seccomp listener";
  const std::vector<Requirement> locks = {domain(prepared.plan)};
  weak(locks, "filesystem.root", kWritesNothing, format("Landlock, ABI {}", abi),
       abi >= 3 ? "mode, owner, times and extended attributes of the caller's own files can still be changed (landlock(7))"
                : "besides mode, owner and times, truncate(2) of the caller's own files is not held before Landlock ABI 3",
       report);
  if (paths.hidden > 0)
    weak(locks, "filesystem.secrets", format("{} names hidden", paths.hidden), "Landlock: allowed piece by piece around them",
         "contents are held; names and attributes can still be asked for, and folders that hold hidden names cannot be listed",
         report);
  for (const Gap& gap : paths.gaps) {
    if (gap.clause == "filesystem.globs") report.none("filesystem.globs", format("rule for {}", escaped(gap.what)), needs);
  }
  // Protected names and read-only entries alike: Landlock cannot take back below a writable folder.
  if (!paths.readonly.empty())
    report.none(
        policy.filesystem.protect != Protect::kNone && paths.protected_dirs > 0 ? "protect.existing" : "filesystem.readonly",
        format("{} read-only inside writable directories", escaped(paths.readonly.front())),
        "Landlock cannot carve holes, and this tier has no mounts; " + needs);
  if (policy.filesystem.protect == Protect::kNone || paths.writable.empty()) return;
  report.later("protect.absent", "control names that do not exist yet", needs);
  report.later("protect.nested", "control names below a writable root's top level", needs);
  if (keeps_git(policy, paths)) report.later("protect.removal", std::string(kGitStays), needs);
}

void report_processes(const Host& host, const launch::Plan& plan, ReportBuilder& report) {
  const bool scoped = (plan.landlock.scoped & kernel::landlock::kScopeSignal) != 0;
  if (plan.identity == launch::Identity::kKeep && host.uid() == 0)
    report.partial("identity", "host root is never held", "", "allow_root_uid: the command keeps host uid 0, without capabilities");
  else
    report.require({{plan.outside_uid != 0, "an id of its own"}}, "identity", format("host id {}", plan.outside_uid),
                   "set before the command starts");
  weak({domain(plan)}, "processes", "other processes out of reach",
       format("Landlock domain: no ptrace{}", scoped ? ", no signals" : ""),
       scoped ? "they can be seen in /proc, and the user's own can be given another priority or processor"
              : "they can be seen in /proc, and the user's own can be signalled (needs Landlock ABI 6), and given another "
                "priority or processor",
       report);
  weak({{plan.subreaper, "a subreaper"}}, "kill", "nothing outlives the command or its front", "subreaper and sweep",
       "a fork bomb can outrun the sweep", report);
  report.require({dropped(plan)}, "privileges", "no capability, no set-id gain", "empty capability sets, no_new_privs");
  report.require({filter(plan)}, "seccomp", "kernel surface reduced, set-id bits refused",
                 format("filter of {} instructions", plan.seccomp.size()));
  report.require({filter(plan), domain(plan)}, "terminal", "no terminal shared",
                 "own session, TIOCSTI and TIOCLINUX refused, other terminals closed by Landlock");
  report.require({dropped(plan), filter(plan)}, std::string(launch::kKeyringClause), "no keyring shared",
                 "empty session keyring, key calls refused");
}

void report_sockets(const Policy& policy, const Prepared& prepared, ReportBuilder& report) {
  const std::vector<std::string>& listed = policy.network.allow_unix_sockets;
  const std::string own = listed.empty() ? "own sockets only" : format("own sockets, and {} of the host's", listed.size());
  switch (prepared.plan.seccomp_spec.unix_sockets) {
    case kernel::UnixSockets::kStream:
    case kernel::UnixSockets::kAll:
      return report.none("network.unix_sockets", policy.network.allow_all_unix_sockets ? kAllShown : own,
                         "every socket can be connected to, those in hidden directories and keepers of other sandboxes among them: "
                         "needs the broker");
    case kernel::UnixSockets::kAnyJudged:
      return weak({filter(prepared.plan), {prepared.plan.seccomp_listener, "a listener for the filter"}}, "network.unix_sockets",
                  kAllShown, "connect judged by the broker on its own copy of the address",
                  "a datagram can still be sent to a hidden socket by its name, and to no abstract one", report);
    case kernel::UnixSockets::kPairs:
      report.require({filter(prepared.plan)}, "network.unix_sockets", own, "seccomp: socket pairs only");
      if (!listed.empty()) report.none("network.allow_unix_sockets", "sockets of the host by path", "needs the broker");
      return;
    case kernel::UnixSockets::kBrokered:
      report.require({filter(prepared.plan), {prepared.plan.seccomp_listener, "a listener for the filter"}}, "network.unix_sockets",
                     own, "connect judged by the broker on its own copy of the address");
  }
}

}  // namespace

bool holds_ports(const Policy& policy) noexcept {
  return policy.network.mode == NetMode::kHost && !policy.network.allow_local_binding.value_or(false);
}

EnforcementReport report_landlock_tier(const Host& host, const Policy& policy, const Workplace& place, const PathPlan& paths,
                                       const Prepared& prepared) {
  const launch::Plan& plan = prepared.plan;
  const int abi = host.landlock_abi();
  const bool brokered = prepared.file_rules != nullptr;
  ReportBuilder report;
  report.require({domain(plan), dropped(plan), filter(plan)}, "mode", std::string(to_string(policy.mode)),
                 brokered ? "Landlock, seccomp and broker, no namespaces" : kTier);
  if (brokered) report_files_by_broker(policy, paths, prepared, abi, report);
  else report_files_by_landlock(policy, place, paths, prepared, abi, report);
  report_siblings(place, paths, prepared, report);
  weak({{!prepared.remove_after.empty(), "a directory of this run"}}, "filesystem.tmp", "private temporary directory",
       "a directory of this run, named by TMPDIR", "/tmp itself is closed, and the size is not limited", report);
  if (policy.filesystem.caches == Caches::kWorkspace)
    report.later("filesystem.caches", "a writable layer over the caches, kept for the workspace's next command",
                 "without mounts of its own a command has no layers: the caches are read-only");
  if (!policy.filesystem.scratch.empty())
    weak({domain(plan)}, "filesystem.scratch", format("writes below {} discarded", escaped(policy.filesystem.scratch.front())),
         "nothing is written there but what entries make writable", "without mounts of its own a command has no layers", report);
  report_processes(host, plan, report);
  if (policy.network.mode == NetMode::kNone)
    report.require({filter(plan), {!plan.seccomp_spec.allow_inet, "a filter that refuses internet sockets"}}, "network", "none",
                   "seccomp: no internet socket can be made, loopback neither");
  else report.require({{plan.seccomp_spec.allow_inet, "internet sockets"}}, "network", "the host's", "no restriction asked for");
  report_sockets(policy, prepared, report);
  if (holds_ports(policy)) report.add(local_binding_clause(plan.seccomp_spec.local_ports, abi));
  EnforcementReport clauses = report.take();
  policy::report_isolation(policy, Isolation::kLandlock, kTier, clauses);
  return clauses;
}

}  // namespace belljar::backend
