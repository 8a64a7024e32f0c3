#include "backend/native/report.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/native/host.h"
#include "backend/native/live_rules.h"
#include "backend/native/local_ports.h"
#include "backend/native/tree.h"
#include "backend/native/view.h"
#include "base/format.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/units.h"
#include "launch/plan.h"

namespace belljar::backend {
namespace {

class Report {
 public:
  void full(std::string clause, std::string asked, std::string mechanism) {
    add({std::move(clause), std::move(asked), std::move(mechanism), Enforced::kFull, ""});
  }
  void partial(std::string clause, std::string asked, std::string mechanism, std::string detail) {
    add({std::move(clause), std::move(asked), std::move(mechanism), Enforced::kPartial, std::move(detail)});
  }
  void later(std::string clause, std::string asked, std::string detail) {
    add({std::move(clause), std::move(asked), "", Enforced::kNone, std::move(detail), true});
  }
  void none(std::string clause, std::string asked, std::string detail) {
    add({std::move(clause), std::move(asked), "", Enforced::kNone, std::move(detail)});
  }
  void add(EnforcementClause clause) { clauses_.push_back(std::move(clause)); }
  EnforcementReport take() { return std::move(clauses_); }

 private:
  EnforcementReport clauses_;
};

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
constexpr char kBroker[] = "broker: the call is performed outside, by name at any depth";

void report_caches(const Paths& paths, Report& report) {
  const View& view = paths.view;
  std::vector<std::string> names;
  for (const Cache& cache : view.caches) names.push_back(cache.path);
  const std::string kept = format("writes below {} kept for the workspace's next command", names.empty() ? "caches" : list(names));
  if (view.kept_pool) report.full("filesystem.caches", kept, "an overlay each, its layer below the state directory");
  else if (!view.not_kept.empty() && names.empty()) report.later("filesystem.caches", kept, view.not_kept);
  else if (!view.not_kept.empty())
    report.partial("filesystem.caches", kept, "overlay on the private tmpfs", format("discarded this time: {}", view.not_kept));
  else if (!names.empty())
    report.full("filesystem.caches", format("writes below {} discarded", list(names)), "overlay on the private tmpfs");
}

void report_files(const Host& host, const Policy& policy, const Paths& paths, bool brokered, Report& report) {
  const bool landlock = host.landlock_abi() > 0;
  // What the broker performs is outside of the command's Landlock domain: one lock.
  const std::string second = landlock && !brokered ? " and Landlock" : "";
  report.full("filesystem.root",
              paths.view.whole_root ? "the host's tree read-only" : format("only {} readable", list(paths.readable)),
              paths.view.whole_root ? "read-only mounts" + second : "a tree of its own" + second);
  std::vector<std::string> left_out;
  for (const Gap& gap : paths.gaps) {
    if (gap.clause == "filesystem.absent_writable") left_out.push_back(gap.what);
  }
  if (!paths.writable.empty() || !left_out.empty()) {
    std::string asked = paths.writable.empty() ? "no writing" : format("write below {} only", list(paths.writable));
    if (!left_out.empty()) asked += format("; of the profile's directories {} do not exist and are left out", list(left_out));
    report.full("filesystem.write", std::move(asked), "mounts" + second);
  }
  if (!paths.readonly.empty()) {
    report.full("filesystem.readonly", format("{} read-only inside writable directories", list(paths.readonly)),
                "read-only mounts (Landlock cannot carve holes: one lock)");
  }
  if (paths.hidden > 0) {
    const auto missing = std::find_if(paths.gaps.begin(), paths.gaps.end(), [&](const Gap& gap) {
      const bool hidden = gap.clause == "filesystem.hidden_absent" || gap.clause == "filesystem.hidden_files";
      return hidden && !(brokered && is_held_by_rules(paths, gap));
    });
    const bool by_rules = std::ranges::any_of(paths.gaps, [&](const Gap& gap) {
      return gap.clause == "filesystem.hidden_absent" && brokered && is_held_by_rules(paths, gap);
    });
    const std::string asked = format("{} names hidden", paths.hidden);
    const std::string lock = brokered ? "(one lock)" : "(one lock; changes fail with what mounts say: EROFS, EBUSY, EISDIR, EXDEV)";
    if (missing == paths.gaps.end() && by_rules)
      report.partial("filesystem.secrets", asked, "masks of mode 000, and live rules for names that may be made",
                     "what live rules hold can be seen and started by name: filesystem.hidden_absent");
    else if (missing == paths.gaps.end())
      report.full("filesystem.secrets", asked, "masks: entries of mode 000 over each name, there or not " + lock);
    else
      report.partial("filesystem.secrets", asked, "masks and covers of mode 000 " + lock,
                     format("{} lies in a writable directory or under `/`: held only while it is not renamed or made on the host",
                            escaped(missing->what)));
  }
  for (const Gap& gap : paths.gaps) {
    if (!is_held_by_rules(paths, gap) || (!brokered && gap.clause == "filesystem.hidden_absent")) continue;
    EnforcementClause clause = held_clause(gap, Mounts::kOwn);
    if (brokered) report.add(std::move(clause));
    else report.none(std::move(clause.clause), std::move(clause.asked), std::string(kNoListener));
  }
  if (!paths.view.private_dirs.empty()) {
    std::vector<std::string> names;
    for (const PrivateDir& dir : paths.view.private_dirs) names.push_back(dir.target);
    report.full("filesystem.tmp", format("private {}, {} together", list(names), to_string(policy.filesystem.tmp_size)),
                "one tmpfs of that size");
  }
  report_caches(paths, report);
}

void report_protect_by_mounts(const Paths& paths, Report& report) {
  if (paths.protected_dirs > 0) {
    const auto weak = std::find_if(paths.gaps.begin(), paths.gaps.end(),
                                   [](const Gap& gap) { return gap.clause == "protect.files" || gap.clause == "protect.links"; });
    const std::string asked = format("{} control names read-only", paths.protected_dirs);
    if (weak == paths.gaps.end())
      report.full("protect.existing", asked, "read-only mounts over whole directories, ancestors pinned");
    else
      report.partial("protect.existing", asked, "read-only mounts, ancestors pinned",
                     format("{} is a file or a link: a rename over it on the host takes the mount off", escaped(weak->what)));
  }
  report.later("protect.absent", "control names that do not exist yet", std::string(kNoListener));
  report.later("protect.nested", "control names below a writable root's top level", std::string(kNoListener));
}

void report_protect(const Policy& policy, const Paths& paths, bool brokered, Report& report) {
  if (policy.filesystem.protect == Protect::kNone || paths.writable.empty()) return;
  if (!brokered) return report_protect_by_mounts(paths, report);
  const std::string mounts = paths.protected_dirs > 0 ? "; existing directories at a root also by read-only mounts" : "";
  report.full("protect.existing", "what git, agents and editors run stays inert",
              "broker: git's control files judged by content, agent and editor names read-only" + mounts);
  report.full("protect.absent", "control names that do not exist yet", kBroker);
  report.full("protect.nested", "control names below a writable root's top level", kBroker);
}

void report_processes(const Workplace& place, const Prepared& prepared, Report& report) {
  const launch::Plan& plan = prepared.plan;
  if (place.owner) {
    report.full("identity", format("host root is never held: the command is host id {}, who owns the workspace", plan.outside_uid),
                "user namespace; this file system has no idmapped mounts");
  } else if (plan.identity == launch::Identity::kRootMapped) {
    report.full("identity", format("host root is never held: inside {} is host id {}", plan.inside_uid, plan.outside_uid),
                "idmapped mounts, user namespace");
  } else if (plan.outside_uid == 0) {
    report.partial("identity", "host root is never held", "user namespace without capabilities",
                   "allow_root_uid: the command keeps host uid 0 for file access");
  } else {
    report.full("identity", format("host id {}, no other", plan.outside_uid), "user namespace");
  }
  report.full("processes", "other processes invisible, out of reach",
              "pid namespace, fresh /proc, Landlock scope where the kernel has it");
  report.full("kill", "nothing outlives the command or its front", "pid namespace, PDEATHSIG");
  report.full("privileges", "no capability, no set-id gain", "empty capability sets, locked securebits, no_new_privs, nosuid");
  report.full("seccomp", "kernel surface reduced, set-id bits refused", format("filter of {} instructions", plan.seccomp.size()));
  report.full("terminal", "no terminal shared", "own session, own devpts, TIOCSTI and TIOCLINUX refused");
  report.full("keyring", "no keyring shared", "empty session keyring, key calls refused");
}

void report_network(const Host& host, const Policy& policy, const Prepared& prepared, Report& report) {
  if (policy.network.mode == NetMode::kProxy) {
    report.full("network", "no route out but the proxy", "network namespace with loopback only; one listening socket, passed out");
  } else if (prepared.own_network) report.full("network", "none", "network namespace with loopback only");
  else report.full("network", "the host's", "no restriction asked for");
  if (policy.network.allow_all_unix_sockets) {
    report.full("network.unix_sockets", "all allowed", "no restriction asked for");
  } else if (!prepared.plan.seccomp_listener) {
    report.partial("network.unix_sockets", "own sockets only", "seccomp: socket pairs only",
                   "no socket with a path or a name can be made: " + std::string(kNoListener));
  } else {
    const std::vector<std::string>& listed = policy.network.allow_unix_sockets;
    report.full("network.unix_sockets", listed.empty() ? "own sockets only" : format("own sockets, and {}", list(listed)),
                "connect judged by the broker on its own copy of the address; datagram sockets refused");
  }
  if (!policy.network.allow_unix_sockets.empty() && !policy.network.allow_all_unix_sockets && !prepared.plan.seccomp_listener)
    report.none("network.allow_unix_sockets", format("{} can be connected to", list(policy.network.allow_unix_sockets)),
                std::string(kNoListener));
  if (policy.network.allow_local_binding.value_or(prepared.own_network)) return;
  report.add(local_binding_clause(prepared.plan.seccomp_spec.local_ports, host.landlock_abi()));
}

}  // namespace

EnforcementReport report_native(const Host& host, const Policy& policy, const Workplace& place, const Paths& paths,
                                const Prepared& prepared) {
  Report report;
  report.full("mode", std::string(to_string(policy.mode)), "namespaces, mounts, Landlock, seccomp");
  const bool brokered = prepared.file_rules != nullptr;
  report_files(host, policy, paths, brokered, report);
  report_protect(policy, paths, brokered, report);
  report_processes(place, prepared, report);
  report_network(host, policy, prepared, report);
  if (host.landlock_abi() == 0) report.partial("landlock", "second lock on paths", "mounts only", "this kernel has no Landlock");
  else if (policy.allow_nested_userns)
    report.partial("landlock", "second lock on paths", "mounts only",
                   "under Landlock no program could mount in a namespace of its own");
  else if (brokered)
    report.partial("landlock", "second lock on paths", format("Landlock, ABI {}", host.landlock_abi()),
                   "calls that the broker performs are held by mounts and rules alone");
  else report.full("landlock", "second lock on paths", format("Landlock, ABI {}", host.landlock_abi()));
  if (policy.enable_weaker_nested_sandbox)
    report.partial("nested", "run inside another sandbox", "best effort",
                   "a /proc mount that the outer sandbox refuses is left out");
  if (policy.allow_nested_userns)
    report.partial("nested_userns", "programs may make user namespaces", "seccomp",
                   "the kernel surface of namespaces is open to the command");
  return report.take();
}

EnforcementReport report_full_access(bool root) {
  Report report;
  report.full("mode", "danger-full-access", "no file and no network rule asked for");
  report.full("kill", "nothing outlives the command or its front", "pid namespace, PDEATHSIG");
  if (!root)
    report.partial("privileges", "the caller's own", "user namespace for the kill guarantee",
                   "set-id programs such as sudo do not gain privileges inside");
  return report.take();
}

EnforcementReport report_external() {
  Report report;
  report.full("mode", "external-sandbox", "nothing is enforced but timeouts and output caps: the caller says another sandbox does");
  report.partial("kill", "nothing outlives the command or its front", "subreaper and sweep", "a fork bomb can outrun the sweep");
  return report.take();
}

}  // namespace belljar::backend
