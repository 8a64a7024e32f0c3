#include "launch/idmap.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "launch/raw.h"

namespace belljar::launch {
namespace {

constexpr std::string_view kIdmapCall = "mount_setattr, MOUNT_ATTR_IDMAP";

const char* next_for(int error) noexcept {
  return error == EMFILE ? "raise the limit of open files (`ulimit -n`)" : "see `belljar doctor`";
}

constexpr unsigned kNobodysId = 0x6ffffffe;  // next to the ids that root lends

// Lives only to hold its user namespace open until the parent has a descriptor of it, and dies with the thread that made it. It
// shares our memory and touches none of it.
int hold(void* parent) {
  raw_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
  // Whoever is gone by now sends no signal any more.
  if (raw_call(SYS_getppid) != reinterpret_cast<long>(parent)) raw_call(SYS_exit_group, 0);
  for (;;) raw_call(SYS_ppoll);
}

// A path below /proc/PID and the text of a map, without the heap: a thread that allocates gets a heap of its own.
int write_map(pid_t pid, const char* name, unsigned inside, unsigned outside, Zero zero) noexcept {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
  char text[96];
  int size = std::snprintf(text, sizeof text, "%u %u 1\n", inside, outside);
  if (zero == Zero::kMapped)
    size += std::snprintf(text + size, sizeof text - static_cast<std::size_t>(size), "%u 0 1\n", inside == 0 ? kNobodysId : 0);
  const UniqueFd fd(::open(path, O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return errno;
  return ::write(fd.get(), text, static_cast<std::size_t>(size)) == size ? 0 : errno;
}

// 0 or errno.
int make_namespace(uid_t inside_uid, uid_t outside_uid, gid_t inside_gid, gid_t outside_gid, Zero zero, UniqueFd& made) noexcept {
  alignas(16) char stack[4096];
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &old);
  const pid_t pid =
      ::clone(hold, stack + sizeof stack, CLONE_VM | CLONE_NEWUSER, reinterpret_cast<void*>(static_cast<long>(::getpid())));
  int error = pid < 0 ? errno : 0;
  ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
  if (pid < 0) return error;
  error = write_map(pid, "uid_map", inside_uid, outside_uid, zero);
  if (error == 0) error = write_map(pid, "gid_map", inside_gid, outside_gid, zero);
  if (error == 0) {
    char path[48];
    std::snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
    made = UniqueFd(::open(path, O_RDONLY | O_CLOEXEC));
    if (!made.valid()) error = errno;
  }
  ::kill(pid, SIGKILL);
  while (::waitpid(pid, nullptr, __WALL) < 0 && errno == EINTR) {
  }
  return error;
}

}  // namespace

Result<UniqueFd> make_idmap(uid_t disk_uid, gid_t disk_gid, uid_t shown_uid, gid_t shown_gid, Zero zero) {
  UniqueFd map;
  const int error = make_namespace(disk_uid, shown_uid, disk_gid, shown_gid, zero, map);
  // In a user namespace that maps no other id, as a rootless container's.
  if (error == EPERM || error == EACCES)
    return Error(Code::kFailedPrecondition, "cannot lend files to an unprivileged id")
        .sys(error, std::string(kIdmapCall))
        .reason("the user namespace around us does not map the id that the command would have")
        .next("run as an ordinary user, or accept a command that keeps root's id with --allow-root-uid");
  if (error != 0)
    return Error(Code::kFailedPrecondition, "cannot make a user namespace for an idmapped mount")
        .sys(error, "clone")
        .next(next_for(error));
  return map;
}

UniqueFd make_id_namespace(uid_t inside_uid, uid_t outside_uid, gid_t inside_gid, gid_t outside_gid) noexcept {
  UniqueFd made;
  make_namespace(inside_uid, outside_uid, inside_gid, outside_gid, Zero::kUnmapped, made);
  return made;
}

Result<UniqueFd> capture_idmapped(const std::string& path, const UniqueFd& idmap, std::uint64_t attributes, Below below) {
  const unsigned recursive = below == Below::kRecursive ? AT_RECURSIVE : 0;
  UniqueFd tree(::open_tree(AT_FDCWD, path.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW | recursive));
  if (!tree.valid())
    return Error(Code::kFailedPrecondition, format("cannot capture {}", quoted(path)))
        .sys(errno, "open_tree")
        .next(next_for(errno));
  mount_attr attr{};
  attr.attr_set = attributes | MOUNT_ATTR_IDMAP;
  attr.propagation = MS_PRIVATE;
  attr.userns_fd = static_cast<std::uint64_t>(idmap.get());
  if (::mount_setattr(tree.get(), "", AT_EMPTY_PATH | recursive, &attr, sizeof attr) < 0) {
    const int error = errno;
    return Error(Code::kFailedPrecondition, format("cannot lend {} to an unprivileged id", quoted(path)))
        .sys(error, std::string(kIdmapCall))
        .reason(below == Below::kRecursive ? "its file system, or one mounted below it, does not support idmapped mounts"
                                           : "its file system does not support idmapped mounts")
        .next(
            "use a workspace on another file system, give this one to an ordinary user, or accept a command that keeps root's host "
            "id "
            "with --allow-root-uid");
  }
  return tree;
}

bool is_refused_idmap(const Error& error) noexcept { return error.call() == kIdmapCall; }

}  // namespace belljar::launch
