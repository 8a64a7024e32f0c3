// Executes the mount operations of a plan with the new mount API (fsopen(2), open_tree(2), move_mount(2)):
// every file system is first a detached mount in a slot, then moved to its place. A detached mount has no
// name, so nothing can interfere with it until it is complete, attributes and idmap included; with mount(2)
// there is a moment in which it is visible and writable.
//
// Places are resolved with RESOLVE_NO_SYMLINKS, and the descriptor that was checked is the one that is used
// (CVE-2026-87766, CVE-2025-31133: mount points reached through a link). Only below what this plan made
// itself, where nobody can have put a link, is that spared (kOwnPlace).
//
// An operation that fails ends the start, with three exceptions that the plan marks: kIfExists (a path
// vanished since the plan was made), kOptional (recorded, and the clause of the report is lowered), kIfEmpty
// (a second choice after a kOptional one).
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "launch/child.h"
#include "launch/plan.h"
#include "launch/stage.h"

namespace belljar::launch {
namespace {

int open_exact(const char* path) noexcept { return static_cast<int>(open_place(path)); }

int set_attributes(int fd, const MountOp& op) noexcept {
  if (op.attr_set == 0 && op.attr_clr == 0 && op.kind != MountOpKind::kSetAttr) return 0;
  mount_attr attr{};
  attr.attr_set = op.attr_set;
  attr.attr_clr = op.attr_clr;
  attr.propagation = MS_PRIVATE;
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
    const int place = open_exact(op.source.c_str());
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

int new_filesystem(const char* type, const MountOp& op, int& slot) noexcept {
  const int mount = make_filesystem(type, op.data, static_cast<unsigned>(op.attr_set));
  if (mount < 0) return mount;
  slot = mount;
  return 0;
}

int attach(const MountOp& op, int& slot) noexcept {
  int status = 0;
  if ((op.flags & kOwnPlace) == 0) status = attach_mount(slot, op.target.c_str());
  else if (::move_mount(slot, "", AT_FDCWD, op.target.c_str(), MOVE_MOUNT_F_EMPTY_PATH) < 0) status = -errno;  // 1 us less
  ::close(slot);
  slot = -1;
  return status;
}

int set_in_place(const MountOp& op) noexcept {
  const int place = open_exact(op.target.c_str());
  if (place < 0) return place;
  const int status = set_attributes(place, op);
  ::close(place);
  return status;
}

int pivot(const MountOp& op) noexcept {
  if (::chdir(op.target.c_str()) < 0) return -errno;
  if (::syscall(SYS_pivot_root, ".", ".") < 0) return -errno;
  // The old root now lies over the new one at "/": take it away, pivot_root(2), "pivot_root(".", ".")".
  if (::umount2(".", MNT_DETACH) < 0) return -errno;
  return ::chdir("/") < 0 ? -errno : 0;
}

int export_directory(ChildContext& context, const MountOp& op) noexcept {
  if (context.exported_count == static_cast<int>(kMaxExported)) return -ENOSPC;
  const int folder = ::open(op.target.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return -errno;
  context.exported[context.exported_count++] = folder;
  return 0;
}

int run_op(ChildContext& context, const MountOp& op) noexcept {
  int none = -1;
  int& slot = op.slot >= 0 ? context.slots[op.slot] : none;
  if ((op.flags & kIfEmpty) != 0 && slot >= 0) return 0;
  switch (op.kind) {
    case MountOpKind::kCapture:
      return capture(op, slot);
    case MountOpKind::kUseFd:
      slot = op.fd;
      return 0;
    case MountOpKind::kTmpfs:
      return new_filesystem("tmpfs", op, slot);
    case MountOpKind::kProc:
      return new_filesystem("proc", op, slot);
    case MountOpKind::kDevpts:
      return new_filesystem("devpts", op, slot);
    case MountOpKind::kMqueue:
      return new_filesystem("mqueue", op, slot);
    case MountOpKind::kOverlay:
      return new_filesystem("overlay", op, slot);
    case MountOpKind::kAttach:
      if (slot < 0) return (op.flags & (kOptional | kIfExists)) != 0 ? 0 : -EBADF;
      return attach(op, slot);
    case MountOpKind::kDetach:
      return ::umount2(op.target.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) < 0 ? -errno : 0;
    case MountOpKind::kSetAttr:
      return set_in_place(op);
    case MountOpKind::kMkdir:
    case MountOpKind::kMkfile:
    case MountOpKind::kWriteFile:
    case MountOpKind::kSymlink:
    case MountOpKind::kSeenLink:
    case MountOpKind::kWhiteout:
    case MountOpKind::kDevice:
    case MountOpKind::kLinkNames:
    case MountOpKind::kChown:
      return run_stage_op(AT_FDCWD, op, MayBind::kYes);
    case MountOpKind::kExport:
      return export_directory(context, op);
    case MountOpKind::kStage:
      return set_stage(context, op);
    case MountOpKind::kAwait:
      return await_names(context);
    case MountOpKind::kPivot:
      return pivot(op);
  }
  return -EINVAL;
}

}  // namespace

int attach_mount(int mount, const char* target) noexcept {
  const int place = open_exact(target);
  if (place < 0) return place;
  const int status = ::move_mount(mount, "", place, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0 ? -errno : 0;
  ::close(place);
  return status;
}

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
    if (!ops[i].clause.empty()) note_skipped(context, static_cast<int>(i), -status);  // nobody asks of the others
  }
  ::umask(callers_umask);
  return await_names(context);
}

}  // namespace belljar::launch
