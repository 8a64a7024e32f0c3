#include "backend/native/confine.h"

#include <linux/landlock.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "backend/backend.h"
#include "backend/native/local_ports.h"
#include "backend/paths/host.h"
#include "backend/paths/live_rules.h"
#include "backend/paths/plan.h"
#include "backend/paths/view.h"
#include "belljar/policy.h"
#include "kernel/seccomp.h"
#include "launch/plan.h"
#include "policy/paths.h"

namespace belljar::backend {
namespace {

// Rights by ABI, landlock(7). Debian 12's header knows ABI 2.
constexpr std::uint64_t kExecute = LANDLOCK_ACCESS_FS_EXECUTE, kWriteFile = LANDLOCK_ACCESS_FS_WRITE_FILE,
                        kReadFile = LANDLOCK_ACCESS_FS_READ_FILE, kReadDir = LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t kAbi1 = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;
constexpr std::uint64_t kMakeSock = LANDLOCK_ACCESS_FS_MAKE_SOCK;
constexpr std::uint64_t kRefer = LANDLOCK_ACCESS_FS_REFER;         // ABI 2
constexpr std::uint64_t kTruncate = 1ULL << 14;                    // ABI 3
constexpr std::uint64_t kBindTcp = 1;                              // ABI 4
constexpr std::uint64_t kScopeAbstractUnix = 1, kScopeSignal = 2;  // ABI 6

constexpr std::uint64_t kRead = kExecute | kReadFile | kReadDir;

std::uint64_t handled_fs(int abi) {
  std::uint64_t handled = kAbi1;
  if (abi >= 2) handled |= kRefer;
  if (abi >= 3) handled |= kTruncate;
  return handled;  // ioctl on devices (ABI 5) is held by the minimal /dev
}

bool in_root(const PathPlan& paths, const std::string& path) {
  return std::any_of(paths.writable.begin(), paths.writable.end(),
                     [&](const std::string& root) { return policy::is_within(path, root); });
}

// Nothing that is writable and private lies above a writable root: its rights would hold there, too.
bool none_above_roots(const PathPlan& paths) {
  const auto apart = [&](const std::string& path) {
    return std::none_of(paths.writable.begin(), paths.writable.end(),
                        [&](const std::string& root) { return policy::is_within(root, path); });
  };
  const View& view = paths.view;
  return std::ranges::all_of(view.private_dirs, [&](const PrivateDir& dir) { return dir.readonly || apart(dir.target); }) &&
         std::ranges::all_of(view.caches, [&](const Cache& cache) { return apart(cache.path); }) &&
         std::ranges::all_of(view.binds,
                             [&](const Bind& bind) { return bind.readonly || in_root(paths, bind.target) || apart(bind.target); });
}

// `on_roots`: on what is writable for good; `all` on what is private.
void add_rules(const PathPlan& paths, std::uint64_t all, std::uint64_t on_roots, launch::LandlockSpec& spec) {
  const View& view = paths.view;
  const auto allow = [&](const std::string& path, std::uint64_t access) { spec.rules.push_back({path, access}); };
  if (view.whole_root) {
    allow("/", kRead);
  } else {
    allow("/", kReadDir);  // a tree of our own: what can be listed in it is what may be seen
    for (const std::string& path : paths.readable) allow(path, kRead);
  }
  for (const std::string& path : paths.writable) allow(path, on_roots);
  for (const PrivateDir& dir : view.private_dirs) {
    if (!dir.readonly) allow(dir.target, all);
  }
  for (const Cache& cache : view.caches) allow(cache.path, all);
  for (const Bind& bind : view.binds) {
    if (!bind.readonly) allow(bind.target, in_root(paths, bind.target) ? on_roots : all);
    else if (!view.whole_root) allow(bind.target, kRead);
  }
  // Device nodes and the process's own files below /proc are written to; both trees are our own mounts.
  allow("/dev", kRead | kWriteFile | kTruncate);
  allow("/dev/mqueue", kRead | kWriteFile);  // by itself: the kernel opens queues on a mount that lies nowhere
  allow("/proc", kRead | kWriteFile | kTruncate);
}

}  // namespace

void confine(const Host& host, const Policy& policy, const Workplace& place, const PathPlan& paths, Prepared& prepared) {
  launch::Plan& plan = prepared.plan;
  const int abi = host.landlock_abi();
  launch::LandlockSpec& spec = plan.landlock;
  const bool bind_allowed = policy.network.allow_local_binding.value_or(prepared.own_network);
  if (abi > 0) {
    // A domain that handles any right of files refuses every mount(2), also in a namespace of the command's own.
    if (!policy.allow_nested_userns) {
      spec.handled_fs = handled_fs(abi);
      // Names in the roots are made by the broker, outside of this domain; bind(2) may only go on where they are nobody's business.
      const bool judged = prepared.file_rules != nullptr;
      prepared.sockets_held = judged && none_above_roots(paths);
      add_rules(paths, spec.handled_fs, judged ? spec.handled_fs & ~kMakeSock : spec.handled_fs, spec);
    }
    if (abi >= 4 && !bind_allowed) spec.handled_net = kBindTcp;
    if (abi >= 6) spec.scoped = kScopeSignal | (policy.network.allow_all_unix_sockets ? 0 : kScopeAbstractUnix);
    spec.enabled = (spec.handled_fs | spec.handled_net | spec.scoped) != 0;  // a ruleset of nothing is ENOMSG
  }
  kernel::SeccompSpec filter;
  const auto judged = place.listener ? kernel::UnixSockets::kBrokered : kernel::UnixSockets::kPairs;
  const auto any = place.listener ? kernel::UnixSockets::kAnyJudged : kernel::UnixSockets::kAll;
  filter.unix_sockets = policy.network.allow_all_unix_sockets ? any : judged;
  filter.allow_nested_userns = policy.allow_nested_userns;
  if (plan.identity == launch::Identity::kSelfMapped || plan.identity == launch::Identity::kRootMapped) {
    filter.only_uid = plan.inside_uid;
    filter.only_gid = plan.inside_gid;
  }
  const bool at_commit = prepared.file_rules != nullptr && is_judged_at_commit(policy, paths, *prepared.file_rules);
  filter.file_calls = at_commit ? kernel::FileCalls::kLinks : file_calls(prepared.file_rules.get());
  if (!bind_allowed) filter.local_ports = hold_local_ports(place.listener, filter.unix_sockets);
  plan.seccomp_listener = kernel::judges_connects(filter.unix_sockets) || filter.file_calls != kernel::FileCalls::kDirect ||
                          filter.local_ports == kernel::LocalPorts::kJudged;
  filter.tell_refusals = plan.seccomp_listener;
  using launch::InnerSocket;
  if (prepared.own_network && kernel::judges_connects(filter.unix_sockets))
    plan.sockets.push_back({.purpose = InnerSocket::Purpose::kPeers, .kind = InnerSocket::Kind::kDiag});
  if (prepared.own_network && filter.unix_sockets == kernel::UnixSockets::kBrokered)
    plan.sockets.push_back({.purpose = InnerSocket::Purpose::kPairs, .kind = InnerSocket::Kind::kMaker});
  plan.seccomp = kernel::build_filter(filter);
  plan.seccomp_spec = filter;
}

}  // namespace belljar::backend
