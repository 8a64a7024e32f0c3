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
#include "backend/landlock/report.h"
#include "backend/native/local_ports.h"
#include "backend/native/native.h"
#include "backend/native/sockets.h"
#include "backend/paths/host.h"
#include "backend/paths/live_rules.h"
#include "backend/paths/owner.h"
#include "backend/paths/plan.h"
#include "backend/paths/view.h"
#include "base/format.h"
#include "base/remove_tree.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "broker/file_rules.h"
#include "kernel/landlock.h"
#include "kernel/seccomp.h"
#include "launch/plan.h"

namespace belljar::backend {
namespace {

constexpr std::size_t kMostRules = 5000;
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
    plan_.keyring_required = std::ranges::find(policy_.require, launch::kKeyringClause) != policy_.require.end();
    BELLJAR_CHECK(choose_identity());
    brokered_ = place_.listener && may_read_callers(host_);
    BELLJAR_CHECK(plan_files());
    BELLJAR_CHECK(make_tmp());
    hidden_ = paths_.hidden_names();
    BELLJAR_CHECK(grant_paths());
    prepared_.sockets = BELLJAR_TRY(list_sockets(host_, policy_, paths_.writable));
    warn_of_sockets(prepared_.sockets, prepared_.warnings);
    if (brokered_) prepared_.file_rules = make_file_rules(policy_, paths_, held_paths());
    confine_calls();
    prepared_.report = report_landlock_tier(host_, policy_, place_, paths_, prepared_);
    return std::move(prepared_);
  }

 private:
  Result<void> plan_files() {
    Workplace place = place_;
    place.listener = brokered_;
    paths_ = BELLJAR_TRY(plan_paths(host_, policy_, place, Mounts::kNone));
    if (policy_.filesystem.temp_dir && policy_.filesystem.clean_temp_dir)
      return Error(Code::kUnimplemented, "cannot enforce filesystem.clean_temp_dir (auto_clean_temp)")
          .reason("the landlock backend has no mounts, so what is written to filesystem.temp_dir stays there")
          .next("use --backend native, or drop temp_dir: $TMPDIR is then a directory that goes with the run");
    for (const Volume& volume : policy_.filesystem.volumes) {
      if (host_.canonical(volume.source) != volume.target)
        return Error(Code::kUnimplemented, format("cannot show volume {}", quoted(volume.target)))
            .reason("the landlock backend has no mounts, so nothing appears at another path")
            .next("use --backend native, or name the directory itself with --write or --read");
    }
    return {};
  }

  broker::EnforcedPaths held_paths() const {
    broker::EnforcedPaths held;
    held.writable = paths_.writable;
    held.writable.push_back(tmp_);
    held.readonly = paths_.readonly;
    held.hidden = hidden_;
    if (paths_.view.whole_root) held.readable = {"/"};
    else held.readable = paths_.readable;
    held.readable.push_back(place_.workspace);  // though it may lie in a hidden directory
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
    tmp_ = name;
    if (policy_.filesystem.temp_dir) return {};
    std::erase_if(plan_.env, [](const std::string& entry) { return entry.starts_with("TMPDIR="); });
    plan_.env.push_back("TMPDIR=" + name);
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
      auto carved = carve(root, hidden_, list_folder, kMostRules);
      if (!carved && place_.siblings && !place_.siblings->hidden.empty())
        return Error(carved.error()).next(carved.error().next() + "; `--siblings shown` hides no other sandbox's workspace");
      for (const std::string& path : BELLJAR_TRY(std::move(carved))) {
        if (is_object(host_, path)) spec.rules.push_back({path, access});
      }
      return {};
    };
    if (paths_.view.whole_root) {
      BELLJAR_CHECK(grant_around("/", read));
    } else {
      for (const std::string& path : paths_.readable) BELLJAR_CHECK(grant_around(path, read));
    }
    const bool in_hidden = std::ranges::any_of(hidden_, [&](const std::string& path) { return is_under(place_.workspace, path); });
    if (in_hidden) BELLJAR_CHECK(grant_around(place_.workspace, read));
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
    if (abi_ >= 4 && holds_ports(policy_)) spec.handled_net = kernel::landlock::kBindTcp;
    if (abi_ >= 6) spec.scoped = kernel::landlock::kScopeSignal | kernel::landlock::kScopeAbstractUnix;
    return {};
  }

  void confine_calls() {
    kernel::SeccompSpec filter;
    const auto judged = brokered_ ? kernel::UnixSockets::kBrokered : kernel::UnixSockets::kPairs;
    const auto any = brokered_ ? kernel::UnixSockets::kAnyJudged : kernel::UnixSockets::kAll;
    filter.unix_sockets = policy_.network.allow_all_unix_sockets ? any : judged;
    filter.file_calls = file_calls(prepared_.file_rules.get());
    if (holds_ports(policy_)) filter.local_ports = hold_local_ports(brokered_, filter.unix_sockets);
    filter.tell_refusals = plan_.seccomp_listener = brokered_;
    filter.allow_inet = policy_.network.mode == NetMode::kHost;
    filter.allow_ipc = false;
    filter.own_pid_namespace = false;
    filter.own_mounts = false;
    plan_.seccomp = kernel::build_filter(filter);
    plan_.seccomp_spec = filter;
  }

  const Host& host_;
  const Policy& policy_;
  const Workplace& place_;
  int abi_;
  bool brokered_ = false;
  std::optional<Workplace> owner_;  // root: as the owner of the workspace sees it
  std::vector<std::string> hidden_;
  PathPlan paths_;
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
