#include "backend/landlock/landlock.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/landlock/carve.h"
#include "backend/native/host.h"
#include "backend/native/live_rules.h"
#include "backend/native/local_ports.h"
#include "backend/native/native.h"
#include "backend/native/owner.h"
#include "backend/native/sockets.h"
#include "backend/native/tree.h"
#include "backend/native/view.h"
#include "base/format.h"
#include "base/remove_tree.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "broker/file_rules.h"
#include "kernel/landlock.h"
#include "kernel/seccomp.h"
#include "launch/plan.h"
#include "policy/backends.h"
#include "policy/defaults.h"

namespace belljar::backend {
namespace {

constexpr std::size_t kMostRules = 5000;
constexpr char kBroker[] = "broker: the call is performed outside, by name at any depth";
constexpr const char* kDeviceNodes[] = {"/dev/null",    "/dev/zero", "/dev/full", "/dev/random",
                                        "/dev/urandom", "/dev/tty",  "/dev/ptmx"};

std::optional<std::vector<std::string>> list_folder(const std::string& folder) {
  DIR* directory = ::opendir(folder.c_str());
  if (directory == nullptr) return std::nullopt;
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  ::closedir(directory);
  return names;
}

std::vector<std::string> hidden_paths(const Paths& paths) {
  const View& view = paths.view;
  std::vector<std::string> hidden = view.hide_dirs;
  hidden.insert(hidden.end(), view.hide_files.begin(), view.hide_files.end());
  for (const auto& [folder, mask] : view.masks) {
    for (const std::string& name : mask.hidden) hidden.push_back(folder + "/" + name);
  }
  for (const Gap& gap : paths.gaps) {
    if (gap.clause == "filesystem.hidden_absent") hidden.push_back(gap.where);
  }
  return hidden;
}

// yama's ptrace_scope 2 leaves callers' memory to those with CAP_SYS_PTRACE, 3 to nobody: the broker could read no path.
bool may_read_callers(const Host& host) {
  const auto scope = host.read_small("/proc/sys/kernel/yama/ptrace_scope");
  if (!scope || scope->empty()) return true;
  return scope->front() < (host.uid() == 0 ? '3' : '2');
}

// Symbolic links are no objects for Landlock: a rule is for what a path leads to.
bool is_object(const Host& host, const std::string& path) {
  const PathKind kind = host.facts(path).kind;
  return kind == PathKind::kDirectory || kind == PathKind::kFile || kind == PathKind::kOther;
}

class Preparation {
 public:
  Preparation(const Host& host, const Policy& policy, const Workplace& place)
      : host_(host), policy_(policy), place_(place), abi_(host.landlock_abi()) {}

  Result<Prepared> run() {
    if (abi_ < 1) {
      return Error(Code::kFailedPrecondition, "cannot use the landlock backend")
          .reason("this kernel has no Landlock, or it is not enabled")
          .next("add `landlock` to the kernel's lsm= list, or use the native backend");
    }
    plan_.env = place_.env;
    plan_.default_cwd = place_.cwd;
    plan_.subreaper = true;
    BELLJAR_CHECK(choose_identity());
    brokered_ = place_.listener && may_read_callers(host_);
    BELLJAR_CHECK(plan_files());
    BELLJAR_CHECK(make_tmp());
    hidden_ = hidden_paths(paths_);
    hide_owners_secrets();
    BELLJAR_CHECK(grant_paths());
    prepared_.sockets = BELLJAR_TRY(list_sockets(host_, policy_, paths_.writable));
    warn_of_sockets(prepared_.sockets, prepared_.warnings);
    if (brokered_) prepared_.file_rules = make_file_rules(policy_, paths_, held_paths());
    confine_calls();
    report();
    return std::move(prepared_);
  }

 private:
  Result<void> plan_files() {
    Policy files = policy_;
    // No private mounts here: what is private gets no grant.
    const bool shared = policy_.filesystem.tmp == Tmp::kShared;
    files.filesystem.tmp = Tmp::kShared;
    if (!shared) files.filesystem.exclude_slash_tmp = files.filesystem.exclude_tmpdir_env_var = true;
    files.filesystem.caches = Caches::kOff;
    Workplace place = place_;
    place.listener = brokered_;
    paths_ = BELLJAR_TRY(plan_paths(host_, files, place));
    const FsEntry* asked = find_rule(policy_.filesystem, "/var/tmp");
    if (!shared && (asked == nullptr || asked->path != "/var/tmp" || asked->access != Access::kWrite))
      std::erase(paths_.writable, "/var/tmp");
    for (const Volume& volume : policy_.filesystem.volumes) {
      if (host_.canonical(volume.source) != volume.target)
        return Error(Code::kUnimplemented, format("cannot show volume {}", quoted(volume.target)))
            .reason("the landlock backend has no mounts, so nothing appears at another path")
            .next("use --backend native, or name the directory itself with --write or --read");
    }
    return {};
  }

  // The command reads what the owner of the workspace may read: their secrets are hidden beside those of root's own home.
  void hide_owners_secrets() {
    if (!owner_ || owner_->home.empty() || policy_.filesystem.secrets != Secrets::kDefault) return;
    for (const std::string& path : policy::default_secret_paths(owner_->home, owner_->runtime_dir)) {
      const FsEntry* rule = find_rule(policy_.filesystem, path);
      if ((rule != nullptr && rule->path == path) || is_under(place_.workspace, path)) continue;
      const std::string real = host_.canonical(path).value_or(path);
      for (const std::string& name : {path, real}) {
        if (std::find(hidden_.begin(), hidden_.end(), name) != hidden_.end()) continue;
        hidden_.push_back(name);
        ++paths_.hidden;
      }
    }
  }

  broker::HeldPaths held_paths() const {
    broker::HeldPaths held;
    held.writable = paths_.writable;
    held.writable.push_back(tmp_);
    held.readonly = paths_.readonly;
    held.hidden = hidden_;
    if (paths_.view.whole_root) held.readable = {"/"};
    else held.readable = paths_.readable;
    held.nodes.assign(std::begin(kDeviceNodes), std::end(kDeviceNodes));
    held.nodes.insert(held.nodes.end(), paths_.view.devices.begin(), paths_.view.devices.end());
    return held;
  }

  Result<void> choose_identity() {
    plan_.outside_uid = plan_.inside_uid = host_.uid();
    plan_.outside_gid = plan_.inside_gid = host_.gid();
    if (host_.uid() != 0) return {};
    if (owner_ = place_of_owner(host_, place_); owner_) {
      plan_.identity = launch::Identity::kSwitched;
      plan_.outside_uid = plan_.inside_uid = owner_->owner->uid;
      plan_.outside_gid = plan_.inside_gid = owner_->owner->gid;
      return {};
    }
    if (policy_.allow_root_uid) return {};
    return Error(Code::kFailedPrecondition, "cannot give up host root for this workspace")
        .reason(format("{} belongs to root, and without mounts it cannot be lent to another id", quoted(place_.workspace)))
        .next("use a workspace that belongs to an ordinary user, or accept the risk with --allow-root-uid");
  }

  // The sandbox's own temporary directory on the host; the caller of the run removes it (Prepared::remove_after).
  Result<void> make_tmp() {
    sweep_orphans();
    std::string name = format("/tmp/belljar-{}-XXXXXX", ::getpid());
    if (::mkdtemp(name.data()) == nullptr)
      return Error(Code::kResourceExhausted, "cannot make a temporary directory").sys(errno, "mkdtemp").next("make room in /tmp");
    prepared_.remove_after.push_back(name);
    if (plan_.identity == launch::Identity::kSwitched && ::chown(name.c_str(), plan_.outside_uid, plan_.outside_gid) < 0) {
      return Error(Code::kInternal, "cannot give the temporary directory away").sys(errno, "chown");
    }
    std::erase_if(plan_.env, [](const std::string& entry) { return entry.starts_with("TMPDIR="); });
    plan_.env.push_back("TMPDIR=" + name);
    tmp_ = name;
    return {};
  }

  // A front that was killed could not remove its directory: the next start does. Only our own, and only of a process that is gone.
  void sweep_orphans() const {
    constexpr std::string_view kPrefix = "belljar-";
    for (const std::string& name : list_folder("/tmp").value_or(std::vector<std::string>())) {
      if (!name.starts_with(kPrefix)) continue;
      const int pid = std::atoi(name.c_str() + kPrefix.size());
      const std::string path = "/tmp/" + name;
      if (pid <= 0 || name.find('-', kPrefix.size()) == std::string::npos || ::kill(pid, 0) == 0 || errno != ESRCH) continue;
      const PathFacts facts = host_.facts(path);
      if (facts.kind == PathKind::kDirectory && (facts.uid == host_.uid() || host_.uid() == 0)) (void)remove_tree(path);
    }
  }

  Result<void> grant_paths() {
    launch::LandlockSpec& spec = plan_.landlock;
    spec.enabled = true;
    spec.handled_fs = kernel::landlock::fs_all(abi_);
    const std::uint64_t read = kernel::landlock::fs_read_exec(abi_);
    const std::uint64_t write = kernel::landlock::fs_read_write(abi_);
    const auto grant_around = [&](const std::string& root, std::uint64_t access) -> Result<void> {
      for (const std::string& path : BELLJAR_TRY(carve(root, hidden_, list_folder, kMostRules))) {
        if (is_object(host_, path)) spec.rules.push_back({path, access});
      }
      return {};
    };
    if (paths_.view.whole_root) {
      BELLJAR_CHECK(grant_around("/", read));
    } else {
      for (const std::string& path : paths_.readable) BELLJAR_CHECK(grant_around(path, read));
    }
    for (const std::string& path : paths_.writable) {
      // What appears in it later must be readable and may be run: there the broker alone holds what is hidden, at every open.
      if (brokered_) spec.rules.push_back({path, write});
      else BELLJAR_CHECK(grant_around(path, write));
    }
    spec.rules.push_back({tmp_, write});
    for (const char* node : kDeviceNodes) spec.rules.push_back({node, write});
    for (const std::string& device : paths_.view.devices) spec.rules.push_back({device, write});
    // The process's own files (oom_score_adj, comm); those of others are the kernel's to refuse, by owner and Landlock domain.
    spec.rules.push_back({"/proc", read | kernel::landlock::kWriteFile | (abi_ >= 3 ? kernel::landlock::kTruncate : 0)});
    if (abi_ >= 4 && holds_ports()) spec.handled_net = kernel::landlock::kBindTcp;
    if (abi_ >= 6) spec.scoped = kernel::landlock::kScopeSignal | kernel::landlock::kScopeAbstractUnix;
    return {};
  }

  // Without the host's network there is no internet socket at all.
  bool holds_ports() const {
    return policy_.network.mode == NetMode::kHost && !policy_.network.allow_local_binding.value_or(false);
  }

  void confine_calls() {
    kernel::SeccompSpec filter;
    const auto judged = brokered_ ? kernel::UnixSockets::kBrokered : kernel::UnixSockets::kPairs;
    filter.unix_sockets = policy_.network.allow_all_unix_sockets ? kernel::UnixSockets::kAll : judged;
    filter.file_calls = file_calls(prepared_.file_rules.get());
    if (holds_ports()) filter.local_ports = hold_local_ports(brokered_, filter.unix_sockets);
    filter.tell_refusals = plan_.seccomp_listener = brokered_;
    filter.allow_inet = policy_.network.mode == NetMode::kHost;
    filter.allow_ipc = false;
    filter.own_pid_namespace = false;
    filter.own_mounts = false;
    plan_.seccomp = kernel::build_filter(filter);
    plan_.seccomp_spec = filter;
  }

  void add(std::string clause, std::string asked, std::string mechanism, Enforced enforced, std::string detail = "",
           bool best_effort = false) {
    prepared_.report.push_back(
        {std::move(clause), std::move(asked), std::move(mechanism), enforced, std::move(detail), best_effort});
  }

  void report() {
    add("mode", std::string(to_string(policy_.mode)),
        brokered_ ? "Landlock, seccomp and broker, no namespaces" : "Landlock and seccomp, no namespaces", Enforced::kFull);
    policy::report_isolation(policy_, Isolation::kLandlock, "Landlock and seccomp, no namespaces", prepared_.report);
    report_files();
    add("filesystem.tmp", "private temporary directory", "a directory of this run, named by TMPDIR", Enforced::kPartial,
        "/tmp itself is closed, and the size is not limited");
    if (policy_.filesystem.caches == Caches::kWorkspace)
      add("filesystem.caches", "a writable layer over the caches, kept for the workspace's next command", "", Enforced::kNone,
          "without mounts of its own a command has no layers: the caches are read-only", true);
    if (plan_.identity == launch::Identity::kKeep && host_.uid() == 0)
      add("identity", "host root is never held", "", Enforced::kPartial,
          "allow_root_uid: the command keeps host uid 0, without capabilities");
    else add("identity", format("host id {}", plan_.outside_uid), "set before the command starts", Enforced::kFull);
    add("processes", "other processes out of reach", "Landlock domain: no ptrace" + std::string(abi_ >= 6 ? ", no signals" : ""),
        Enforced::kPartial,
        abi_ >= 6 ? "they can be seen in /proc, and the user's own can be given another priority or processor"
                  : "they can be seen in /proc, and the user's own can be signalled (needs Landlock ABI 6), and given another "
                    "priority or processor");
    add("kill", "nothing outlives the command or its front", "subreaper and sweep", Enforced::kPartial,
        "a fork bomb can outrun the sweep");
    add("privileges", "no capability, no set-id gain", "empty capability sets, no_new_privs", Enforced::kFull);
    add("seccomp", "kernel surface reduced, set-id bits refused", format("filter of {} instructions", plan_.seccomp.size()),
        Enforced::kFull);
    add("terminal", "no terminal shared", "own session, TIOCSTI and TIOCLINUX refused, other terminals closed by Landlock",
        Enforced::kFull);
    if (policy_.network.mode == NetMode::kNone)
      add("network", "none", "seccomp: no internet socket can be made, loopback neither", Enforced::kFull);
    else add("network", "the host's", "no restriction asked for", Enforced::kFull);
    const std::vector<std::string>& listed = policy_.network.allow_unix_sockets;
    const std::string own = listed.empty() ? "own sockets only" : format("own sockets, and {} of the host's", listed.size());
    add("network.unix_sockets", policy_.network.allow_all_unix_sockets ? "all allowed" : own,
        policy_.network.allow_all_unix_sockets ? "no restriction asked for"
        : brokered_                            ? "connect judged by the broker on its own copy of the address"
                                               : "seccomp: socket pairs only",
        Enforced::kFull);
    if (!listed.empty() && !brokered_ && !policy_.network.allow_all_unix_sockets)
      add("network.allow_unix_sockets", "sockets of the host by path", "", Enforced::kNone, "needs the broker");
    if (holds_ports()) prepared_.report.push_back(local_binding_clause(plan_.seccomp_spec.local_ports, abi_));
  }

  void report_files() {
    if (!brokered_) return report_files_by_landlock();
    add("filesystem.root", "nothing written outside", format("broker for what is written by name; Landlock, ABI {}", abi_),
        Enforced::kPartial,
        "owner, times and extended attributes (access control lists, too) of the caller's own files can still be changed");
    if (paths_.hidden > 0) {
      const bool all = prepared_.file_rules->every_read_matters();
      add("filesystem.secrets", format("{} names hidden", paths_.hidden),
          all ? "broker: every open is performed outside; Landlock allows piece by piece around those outside writable directories"
              : "Landlock: what is read and run is allowed piece by piece around them; broker: what is listed, written, moved, "
                "linked",
          Enforced::kFull);
      add("filesystem.secrets_metadata", "not even seen", "", Enforced::kPartial,
          "that they exist, their sizes, times and link texts can be asked for (stat, readlink), and their owner can change times, "
          "owner "
          "and extended attributes");
    }
    for (const Gap& gap : paths_.gaps) {
      if (gap.clause != "filesystem.hidden_absent" && is_held_by_rules(paths_, gap))
        prepared_.report.push_back(held_clause(gap, Mounts::kNone));
    }
    if (!paths_.readonly.empty())
      add("filesystem.readonly", format("{} read-only inside writable directories", escaped(paths_.readonly.front())), kBroker,
          Enforced::kFull);
    if (policy_.filesystem.protect == Protect::kNone || paths_.writable.empty()) return;
    add("protect.existing", "what git, agents and editors run stays inert",
        "broker: git's control files judged by content, agent and editor names read-only", Enforced::kFull);
    add("protect.absent", "control names that do not exist yet", kBroker, Enforced::kFull);
    add("protect.nested", "control names below a writable root's top level", kBroker, Enforced::kFull);
  }

  // Without a broker: another sandbox has the one seccomp listener, or yama keeps callers' memory from us.
  void report_files_by_landlock() {
    const std::string needs = place_.listener ? "needs the broker, which kernel.yama.ptrace_scope keeps from reading what is asked"
                                              : "needs the broker: another sandbox has the one seccomp listener";
    add("filesystem.root", "nothing written outside", format("Landlock, ABI {}", abi_), Enforced::kPartial,
        abi_ >= 3 ? "mode, owner, times and extended attributes of the caller's own files can still be changed (landlock(7))"
                  : "besides mode, owner and times, truncate(2) of the caller's own files is not held before Landlock ABI 3");
    if (paths_.hidden > 0) {
      add("filesystem.secrets", format("{} names hidden", paths_.hidden), "Landlock: allowed piece by piece around them",
          Enforced::kPartial,
          "contents are held; names and attributes can still be asked for, and folders that hold hidden names cannot be listed");
    }
    for (const Gap& gap : paths_.gaps) {
      if (gap.clause == "filesystem.globs")
        add("filesystem.globs", format("rule for {}", escaped(gap.what)), "", Enforced::kNone, needs);
    }
    if (!paths_.readonly.empty()) {
      // Protected names and read-only entries alike: Landlock cannot take back below a writable folder.
      add(policy_.filesystem.protect != Protect::kNone && paths_.protected_dirs > 0 ? "protect.existing" : "filesystem.readonly",
          format("{} read-only inside writable directories", escaped(paths_.readonly.front())), "", Enforced::kNone,
          "Landlock cannot carve holes, and this tier has no mounts; " + needs);
    }
    if (policy_.filesystem.protect == Protect::kNone || paths_.writable.empty()) return;
    add("protect.absent", "control names that do not exist yet", "", Enforced::kNone, needs, true);
    add("protect.nested", "control names below a writable root's top level", "", Enforced::kNone, needs, true);
  }

  const Host& host_;
  const Policy& policy_;
  const Workplace& place_;
  int abi_;
  bool brokered_ = false;
  std::optional<Workplace> owner_;  // root: as the owner of the workspace sees it
  std::vector<std::string> hidden_;
  Paths paths_;
  Prepared prepared_;
  launch::Plan& plan_ = prepared_.plan;
  std::string tmp_;
};

}  // namespace

Result<Prepared> LandlockBackend::prepare(const Policy& policy, const Workplace& place) {
  if (place.layers)
    return Error(Code::kUnimplemented, "cannot run in a transaction (--txn)")
        .reason("the landlock backend has no mounts of its own, so what a command writes goes to the host")
        .next("use --backend native, or drop --txn");
  if (policy.network.mode == NetMode::kProxy)
    return Error(Code::kUnimplemented, "cannot enforce network.mode = \"proxy\"")
        .reason("the landlock backend has no network namespace, so nothing would hold a program to the proxy")
        .next("use --backend native, or --net none");
  if (!policy.network.publish.empty() || !policy.network.host_ports.empty())
    return Error(Code::kUnimplemented, "cannot enforce network.publish and network.host_ports")
        .reason("the landlock backend has no network of its own that ports could be joined with")
        .next("use --backend native, or drop the keys");
  if (policy.mode == Mode::kExternalSandbox) return NativeBackend(host_).prepare(policy, place);  // no namespaces there either
  if (policy.mode == Mode::kDangerFullAccess)
    return Error(Code::kUnimplemented, "cannot run in mode danger-full-access")
        .reason(
            "what it still promises, that nothing outlives the command, takes a pid namespace, which the landlock backend has not")
        .next("use --backend native, or mode external-sandbox");
  if (policy.allow_nested_userns)
    return Error(Code::kUnimplemented, "cannot enforce allow_nested_userns")
        .reason("a process under Landlock may not mount, so namespaces of its own would be of no use to it (landlock(7))")
        .next("use --backend native, or drop the key");
  const Workplace canonical = canonical_place(host_, place);
  return Preparation(host_, policy, canonical).run();
}

}  // namespace belljar::backend
