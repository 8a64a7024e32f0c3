// Executes the mount operations of a plan with the new mount API: every file system is first a detached mount in a slot, then moved
// to its place. Places are resolved with RESOLVE_NO_SYMLINKS, and the descriptor that was checked is the one that is used
// (CVE-2026-87766, CVE-2025-31133: mount points reached through a link).
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "launch/child.h"
#include "launch/plan.h"

namespace belljar::launch {
namespace {

int open_exact(const char* path, std::uint64_t flags) noexcept {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS;
  const long fd = ::syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
  return fd < 0 ? -errno : static_cast<int>(fd);
}

int set_attributes(int fd, const MountOp& op) noexcept {
  if (op.attr_set == 0 && op.attr_clr == 0 && op.userns_fd < 0 && op.kind != MountOpKind::kSetAttr) return 0;
  mount_attr attr{};
  attr.attr_set = op.attr_set;
  attr.attr_clr = op.attr_clr;
  attr.propagation = MS_PRIVATE;
  if (op.userns_fd >= 0) {
    attr.attr_set |= MOUNT_ATTR_IDMAP;
    attr.userns_fd = static_cast<std::uint64_t>(op.userns_fd);
  }
  const unsigned recursive = (op.flags & kRecursive) != 0 ? AT_RECURSIVE : 0;
  return ::mount_setattr(fd, "", AT_EMPTY_PATH | recursive, &attr, sizeof attr) < 0 ? -errno : 0;
}

int capture(const MountOp& op, int& slot) noexcept {
  const unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | ((op.flags & kRecursive) != 0 ? AT_RECURSIVE : 0);
  int tree = -1;
  if ((op.flags & kOwnPlace) != 0) {
    tree = ::open_tree(AT_FDCWD, op.source.c_str(), flags | AT_SYMLINK_NOFOLLOW);
    if (tree < 0) return -errno;
  } else {
    const int place = open_exact(op.source.c_str(), O_PATH);
    if (place < 0) return place;
    tree = ::open_tree(place, "", flags | AT_EMPTY_PATH);
    const int error = errno;
    ::close(place);
    if (tree < 0) return -error;
  }
  if (const int status = set_attributes(tree, op); status < 0) {
    ::close(tree);
    return status;
  }
  slot = tree;
  return 0;
}

// `data` holds "key=value" or "flag" strings, each ended by NUL.
int make_filesystem(const char* type, const MountOp& op, int& slot) noexcept {
  const int context = ::fsopen(type, FSOPEN_CLOEXEC);
  if (context < 0) return -errno;
  int status = 0;
  const char* end = op.data.data() + op.data.size();
  for (const char* item = op.data.data(); item < end && status == 0; item += std::strlen(item) + 1) {
    const char* equals = std::strchr(item, '=');
    char key[32];
    if (equals == nullptr) {
      if (::fsconfig(context, FSCONFIG_SET_FLAG, item, nullptr, 0) < 0) status = -errno;
      continue;
    }
    const auto length = static_cast<std::size_t>(equals - item);
    if (length >= sizeof key) {
      status = -EINVAL;
      break;
    }
    std::memcpy(key, item, length);
    key[length] = '\0';
    if (::fsconfig(context, FSCONFIG_SET_STRING, key, equals + 1, 0) < 0) status = -errno;
  }
  if (status == 0 && ::fsconfig(context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) < 0) status = -errno;
  if (status == 0) {
    const int mount = ::fsmount(context, FSMOUNT_CLOEXEC, static_cast<unsigned>(op.attr_set));
    if (mount < 0) status = -errno;
    else slot = mount;
  }
  ::close(context);
  return status;
}

int attach(const MountOp& op, int& slot) noexcept {
  int status = 0;
  if ((op.flags & kOwnPlace) != 0) {  // two calls and 1 us less
    if (::move_mount(slot, "", AT_FDCWD, op.target.c_str(), MOVE_MOUNT_F_EMPTY_PATH) < 0) status = -errno;
  } else {
    const int place = open_exact(op.target.c_str(), O_PATH);
    if (place < 0) return place;
    if (::move_mount(slot, "", place, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0) status = -errno;
    ::close(place);
  }
  ::close(slot);
  slot = -1;
  return status;
}

int set_in_place(const MountOp& op) noexcept {
  const int place = open_exact(op.target.c_str(), O_PATH);
  if (place < 0) return place;
  const int status = set_attributes(place, op);
  ::close(place);
  return status;
}

// Directories and files are made only on file systems of our own (the private tmpfs): the builder sees to it, and a link in the way
// is refused here all the same.
int make_node(const MountOp& op) noexcept {
  const char* path = op.target.c_str();
  if (op.kind == MountOpKind::kMkdir) {
    return ::mkdir(path, op.mode) < 0 && errno != EEXIST ? -errno : 0;  // umask is 0 here
  }
  if (op.kind == MountOpKind::kSymlink) return ::symlink(op.source.c_str(), path) < 0 && errno != EEXIST ? -errno : 0;
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return errno == EEXIST ? 0 : -errno;
  int status = 0;
  if (!op.data.empty() && ::write(fd, op.data.data(), op.data.size()) != static_cast<ssize_t>(op.data.size())) status = -EIO;
  if (status == 0 && ::fchmod(fd, op.mode) < 0) status = -errno;
  ::close(fd);
  return status;
}

// Root makes the node; an ordinary user, and root in a container that may not (mknod(2), EPERM), binds the host's over a file.
int make_device(const MountOp& op) noexcept {
  if (op.device != 0) {
    if (::mknod(op.target.c_str(), S_IFCHR | 0666, op.device) == 0) return 0;
    if (errno != EPERM) return -errno;
  }
  const int from = open_exact(op.source.c_str(), O_PATH);
  if (from < 0) return from;
  const int tree = ::open_tree(from, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
  const int to = tree < 0 ? -1 : ::open(op.target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  int status = to < 0 ? -errno : 0;
  if (status == 0 && ::move_mount(tree, "", to, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0) status = -errno;
  for (const int fd : {from, tree, to}) {
    if (fd >= 0) ::close(fd);
  }
  return status;
}

int link_names(const MountOp& op) noexcept {
  const int folder = open_exact(op.target.c_str(), O_PATH | O_DIRECTORY);
  if (folder < 0) return folder;
  int status = 0;
  const char* end = op.data.data() + op.data.size();
  for (const char* name = op.data.data(); name < end && status == 0; name += std::strlen(name) + 1) {
    if (::linkat(folder, op.source.c_str(), folder, name, 0) < 0 && errno != EEXIST) status = -errno;
  }
  ::close(folder);
  return status;
}

int set_owner(const MountOp& op) noexcept { return ::lchown(op.target.c_str(), op.uid, op.gid) < 0 ? -errno : 0; }

int pivot(const MountOp& op) noexcept {
  if (::chdir(op.target.c_str()) < 0) return -errno;
  if (::syscall(SYS_pivot_root, ".", ".") < 0) return -errno;
  // The old root now lies over the new one at "/": take it away, pivot_root(2), "pivot_root(".", ".")".
  if (::umount2(".", MNT_DETACH) < 0) return -errno;
  return ::chdir("/") < 0 ? -errno : 0;
}

int run_op(ChildContext& context, const MountOp& op) noexcept {
  int none = -1;
  int& slot = op.slot >= 0 ? context.slots[op.slot] : none;
  if ((op.flags & kIfEmpty) != 0 && slot >= 0) return 0;
  switch (op.kind) {
    case MountOpKind::kCapture:
      return capture(op, slot);
    case MountOpKind::kTakeFd:
      slot = op.fd;
      return 0;
    case MountOpKind::kTmpfs:
      return make_filesystem("tmpfs", op, slot);
    case MountOpKind::kProc:
      return make_filesystem("proc", op, slot);
    case MountOpKind::kDevpts:
      return make_filesystem("devpts", op, slot);
    case MountOpKind::kMqueue:
      return make_filesystem("mqueue", op, slot);
    case MountOpKind::kOverlay:
      return make_filesystem("overlay", op, slot);
    case MountOpKind::kAttach:
      if (slot < 0) return (op.flags & (kOptional | kIfExists)) != 0 ? 0 : -EBADF;
      return attach(op, slot);
    case MountOpKind::kSetAttr:
      return set_in_place(op);
    case MountOpKind::kMkdir:
    case MountOpKind::kMkfile:
    case MountOpKind::kWriteFile:
    case MountOpKind::kSymlink:
      return make_node(op);
    case MountOpKind::kDevice:
      return make_device(op);
    case MountOpKind::kLinkNames:
      return link_names(op);
    case MountOpKind::kChown:
      return set_owner(op);
    case MountOpKind::kPivot:
      return pivot(op);
  }
  return -EINVAL;
}

}  // namespace

int build_tree(ChildContext& context) noexcept {
  const auto& ops = context.plan->mounts;
  const mode_t callers_umask = ::umask(0);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const int status = run_op(context, ops[i]);
    if (status == 0) continue;
    const bool vanished = status == -ENOENT || status == -ENOTDIR;
    if (vanished && (ops[i].flags & kIfExists) != 0) continue;
    if ((ops[i].flags & kOptional) == 0) {
      context.failed_op = static_cast<int>(i);
      return status;
    }
    if (context.skipped < static_cast<int>(std::size(context.skipped_op))) {
      context.skipped_op[context.skipped] = static_cast<int>(i);
      context.skipped_errno[context.skipped] = -status;
      ++context.skipped;
    }
  }
  ::umask(callers_umask);
  return 0;
}

}  // namespace belljar::launch
