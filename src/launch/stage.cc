// The stage: a tmpfs on which the tree is put together, and the files on it.
//
// Two kinds of thread run this code: the child itself, and a helper that makes the hidden names meanwhile.
// The helper is a clone that shares memory, descriptors and thread-local storage with the child (CLONE_VM
// without CLONE_SETTLS), so two of them would write one errno. That is why everything here that the helper
// may reach calls the kernel by raw_call() and returns -errno.
//
// A stage may come ready-made from the parent (early_setup.h): root's whole, an ordinary user's without what needs a
// mount. There is no helper then, and `names` is the pipe that says when the names are done.
//
// open_place() opens a path without links. Inside another Belljar openat2(2) is ENOSYS (its mode is behind a
// pointer, which the outer filter cannot see), so the same is done component by component.
#include "launch/stage.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "launch/child.h"
#include "launch/plan.h"
#include "launch/raw.h"

namespace belljar::launch {
namespace {

int link_names(int stage, const MountOp& op) noexcept {
  const long folder = raw_call(SYS_openat, stage, as_long(op.target.c_str()), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return static_cast<int>(folder);
  long status = 0;
  const char* end = op.data.data() + op.data.size();
  for (const char* name = op.data.data(); name < end && status == 0; name += std::strlen(name) + 1) {
    status = raw_call(SYS_linkat, folder, as_long(op.source.c_str()), folder, as_long(name), 0);
    if (status == -EEXIST) status = 0;
  }
  raw_call(SYS_close, folder);
  return static_cast<int>(status);
}

long create(int stage, const MountOp& op, mode_t mode) noexcept {
  return raw_call(SYS_openat, stage, as_long(op.target.c_str()), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
}

long write_file(int stage, const MountOp& op) noexcept {
  const long fd = create(stage, op, 0600);
  if (fd < 0) return fd;
  long status = 0;
  if (!op.data.empty() &&
      raw_call(SYS_write, fd, as_long(op.data.data()), static_cast<long>(op.data.size())) != static_cast<long>(op.data.size()))
    status = -EIO;
  if (status == 0) status = raw_call(SYS_fchmod, fd, op.mode);
  raw_call(SYS_close, fd);
  return status;
}

long bind_device(int stage, const MountOp& op) noexcept {
  const long from = open_place(op.source.c_str());
  if (from < 0) return from;
  const long tree = raw_call(SYS_open_tree, from, as_long(""), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
  const long to = tree < 0 ? tree : create(stage, op, 0666);
  long status = to < 0 ? to : 0;
  if (status == 0)
    status = raw_call(SYS_move_mount, tree, as_long(""), to, as_long(""), MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
  for (const long fd : {from, tree, to}) {
    if (fd >= 0) raw_call(SYS_close, fd);
  }
  return status;
}

// Root makes the node; an ordinary user, and root in a container that may not (mknod(2), EPERM), binds the host's over a file.
long make_device(int stage, const MountOp& op, MayBind may_bind) noexcept {
  long status = -EPERM;
  if (op.device != 0)
    status = raw_call(SYS_mknodat, stage, as_long(op.target.c_str()), S_IFCHR | 0666, static_cast<long>(op.device));
  return status == -EPERM && may_bind == MayBind::kYes ? bind_device(stage, op) : status;
}

long make_link(int stage, const MountOp& op) noexcept {
  return raw_call(SYS_symlinkat, as_long(op.source.c_str()), stage, as_long(op.target.c_str()));
}

long make_seen_link(int stage, const MountOp& op) noexcept {
  const long status = make_link(stage, op);
  constexpr timespec kNever[2] = {{0, 0}, {0, UTIME_OMIT}};
  if (status < 0) return status;
  return raw_call(SYS_utimensat, stage, as_long(op.target.c_str()), reinterpret_cast<long>(kNever), AT_SYMLINK_NOFOLLOW);
}

// Needs no capability, mknod(2). Another sandbox around this one refuses all devices.
long make_whiteout(int stage, const MountOp& op) noexcept {
  const long status = raw_call(SYS_mknodat, stage, as_long(op.target.c_str()), S_IFCHR, 0);
  return status == -EPERM ? make_link(stage, op) : status;
}

// --- the child's own helper, for the names

HelperStatus outcome;
pid_t helper = -1;
alignas(16) char helper_stack[8192];
int helpers_stage = -1;

int help(void* context) noexcept {
  outcome.end(run_stage_ops(helpers_stage, static_cast<ChildContext*>(context)->plan->stage_names, MayBind::kNo));
  return 0;
}

// The helper shares memory, descriptors and directory with the child, listens to nobody, and is gone before anything else runs
// inside. It shares the thread-local storage too.
void begin_names(ChildContext& context, int stage) noexcept {
  outcome.begin();
  helpers_stage = stage;
  helper = ::clone(help, helper_stack + sizeof helper_stack, CLONE_VM | CLONE_FILES | CLONE_FS, &context);
  if (helper < 0) help(&context);  // no process free: then one after the other
}

// The same name by name, inside another Belljar, whose filter refuses openat2.
long open_by_names(const char* path) noexcept {
  long here = raw_call(SYS_openat, AT_FDCWD, as_long("/"), O_PATH | O_DIRECTORY | O_CLOEXEC);
  while (here >= 0) {
    while (*path == '/') ++path;
    if (*path == '\0') return here;
    char name[NAME_MAX + 1];
    std::size_t length = 0;
    while (path[length] != '/' && path[length] != '\0') {
      if (length == NAME_MAX) return raw_call(SYS_close, here), -ENAMETOOLONG;
      name[length] = path[length];
      ++length;
    }
    name[length] = '\0';
    path += length;
    const long next = raw_call(SYS_openat, here, as_long(name), O_PATH | O_NOFOLLOW | O_CLOEXEC);
    raw_call(SYS_close, here);
    struct stat status{};
    here = next;
    if (here < 0) return here;
    const long asked = raw_call(SYS_newfstatat, here, as_long(""), as_long(&status), AT_EMPTY_PATH);
    if (asked < 0 || S_ISLNK(status.st_mode)) return raw_call(SYS_close, here), asked < 0 ? asked : -ELOOP;
  }
  return here;
}

}  // namespace

long open_place(const char* path) noexcept {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS;
  const long place = raw_call(SYS_openat2, AT_FDCWD, as_long(path), as_long(&how), sizeof how);
  return place == -ENOSYS ? open_by_names(path) : place;
}

int make_filesystem(const char* type, const std::string& options, unsigned attributes) noexcept {
  const long context = raw_call(SYS_fsopen, as_long(type), FSOPEN_CLOEXEC);
  if (context < 0) return static_cast<int>(context);
  long status = 0;
  const char* end = options.data() + options.size();
  for (const char* item = options.data(); item < end && status == 0; item += std::strlen(item) + 1) {
    const char* equals = std::strchr(item, '=');
    char key[32];
    if (equals == nullptr) {
      status = raw_call(SYS_fsconfig, context, FSCONFIG_SET_FLAG, as_long(item), 0, 0);
      continue;
    }
    const auto length = static_cast<std::size_t>(equals - item);
    if (length >= sizeof key) {
      status = -EINVAL;
      break;
    }
    std::memcpy(key, item, length);
    key[length] = '\0';
    status = raw_call(SYS_fsconfig, context, FSCONFIG_SET_STRING, as_long(key), as_long(equals + 1), 0);
  }
  if (status == 0) status = raw_call(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, 0, 0, 0);
  if (status == 0) status = raw_call(SYS_fsmount, context, FSMOUNT_CLOEXEC, attributes);
  raw_call(SYS_close, context);
  return static_cast<int>(status);
}

int run_stage_op(int stage, const MountOp& op, MayBind may_bind) noexcept {
  const long path = as_long(op.target.c_str());
  long status = -EINVAL;
  if (op.kind == MountOpKind::kLinkNames) status = link_names(stage, op);
  else if (op.kind == MountOpKind::kMkdir) status = raw_call(SYS_mkdirat, stage, path, op.mode);
  else if (op.kind == MountOpKind::kChown) status = raw_call(SYS_fchownat, stage, path, op.uid, op.gid, AT_SYMLINK_NOFOLLOW);
  else if (op.kind == MountOpKind::kSymlink) status = make_link(stage, op);
  else if (op.kind == MountOpKind::kSeenLink) status = make_seen_link(stage, op);
  else if (op.kind == MountOpKind::kWhiteout) status = make_whiteout(stage, op);
  else if (op.kind == MountOpKind::kMkfile || op.kind == MountOpKind::kWriteFile) status = write_file(stage, op);
  else if (op.kind == MountOpKind::kDevice) status = make_device(stage, op, may_bind);
  return status == -EEXIST ? 0 : static_cast<int>(status);
}

int run_stage_ops(int stage, std::span<const MountOp> ops, MayBind may_bind) noexcept {
  for (const MountOp& op : ops) {
    if (const int status = run_stage_op(stage, op, may_bind); status < 0) return status;
  }
  return 0;
}

int set_stage(ChildContext& context, const MountOp& op) noexcept {
  const bool ready = context.stage >= 0;
  const int stage = ready ? context.stage : make_filesystem("tmpfs", op.data, static_cast<unsigned>(op.attr_set));
  if (stage < 0) return stage;
  if (const int status = attach_mount(stage, op.target.c_str()); status < 0) return status;
  if (ready && !context.entered) return 0;
  if (const int status = run_stage_ops(stage, context.plan->stage_rest, MayBind::kYes); status < 0) return status;
  // The names take as long as the rest of the tree: on a second processor they cost nothing.
  if (!ready) begin_names(context, stage);
  return 0;
}

int await_names(ChildContext& context) noexcept {
  if (context.names >= 0) {
    int status = -EPIPE;
    await_or_end(context, context.names);
    const ssize_t got = ::read(context.names, &status, sizeof status);
    ::close(context.names);
    context.names = -1;
    return got == sizeof status ? status : -EPIPE;
  }
  return helper < 0 && helpers_stage < 0 ? 0 : outcome.await();
}

int end_names(ChildContext& context) noexcept {
  if (context.names >= 0) {  // nothing was masked; the helper must be gone all the same
    if (const int status = await_names(context); status < 0) return status;
  }
  while (helper > 0 && ::waitpid(helper, nullptr, __WALL) < 0) {
    if (errno != EINTR) return -errno;
  }
  helper = -1;
  return 0;
}

}  // namespace belljar::launch
