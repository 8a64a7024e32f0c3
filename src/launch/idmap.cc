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
#include <cstdint>
#include <string>
#include <string_view>

#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::launch {
namespace {

constexpr std::string_view kIdmapCall = "mount_setattr, MOUNT_ATTR_IDMAP";

const char* next_for(int error) noexcept {
  return error == EMFILE ? "raise the limit of open files (`ulimit -n`)" : "see `belljar doctor`";
}

// Lives only to hold its user namespace open until the parent has a descriptor of it. It shares our memory and touches none of it.
int hold(void*) {
  for (;;) ::pause();
}

constexpr unsigned kNobodysId = 0x6ffffffe;  // next to the ids that root lends

int write_map(pid_t pid, const char* name, unsigned inside, unsigned outside, Zero zero) {
  std::string text = format("{} {} 1\n", inside, outside);
  if (zero == Zero::kMapped) text += format("{} 0 1\n", inside == 0 ? kNobodysId : 0);
  const UniqueFd fd(::open(format("/proc/{}/{}", pid, name).c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return errno;
  return ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : errno;
}

}  // namespace

Result<UniqueFd> make_idmap(uid_t disk_uid, gid_t disk_gid, uid_t shown_uid, gid_t shown_gid, Zero zero) {
  alignas(16) char stack[4096];
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &old);
  const pid_t pid = ::clone(hold, stack + sizeof stack, CLONE_VM | CLONE_NEWUSER, nullptr);
  int error = pid < 0 ? errno : 0;
  ::sigprocmask(SIG_SETMASK, &old, nullptr);
  UniqueFd map;
  if (pid > 0) {
    error = write_map(pid, "uid_map", disk_uid, shown_uid, zero);
    if (error == 0) error = write_map(pid, "gid_map", disk_gid, shown_gid, zero);
    if (error == 0) {
      map = UniqueFd(::open(format("/proc/{}/ns/user", pid).c_str(), O_RDONLY | O_CLOEXEC));
      if (!map.valid()) error = errno;
    }
    ::kill(pid, SIGKILL);
    while (::waitpid(pid, nullptr, __WALL) < 0 && errno == EINTR) {
    }
  }
  if (error != 0)
    return Error(Code::kFailedPrecondition, "cannot make a user namespace for an idmapped mount")
        .sys(error, "clone")
        .next(next_for(error));
  return map;
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
