// The mounts of a recipe, in its order. Each is a detached mount first and gets its attributes before it can be seen.
//
// All that is shown of the host is copied before anything is made: a recipe with a source that is not there changes nothing, and no
// copy can hold a mount of ours. Then a tmpfs, the base, goes on top of the old root, and the new root into a directory of it. A
// path of the host still starts at our own root, which is below the base; a path of the sandbox starts at a descriptor of the new
// root. Nothing is reached by name through the other.
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "launch/recipe.h"
#include "launch/recipe_child.h"
#include "launch/recipe_mount_points.h"
#include "launch/recipe_stubs.h"
#include "launch/stage.h"

namespace belljar::launch {
namespace {

using FailedStep = RecipeFailure::FailedStep;
using Kind = RecipeOp::Kind;

int copy_tree(int from, unsigned recursive) noexcept {
  const int tree = ::open_tree(from, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | recursive);
  return tree < 0 ? -errno : tree;
}

// What belongs to the caller's mount namespace (a descriptor of theirs, a link in /proc/self/fd) cannot be copied here, so it is
// looked up by its name and must then be the same.
int open_by_its_name(RecipeContext& context, int theirs) noexcept {
  char path[PATH_MAX];
  const ssize_t size = ::readlink(DescriptorPath(theirs).c_str(), path, sizeof path - 1);
  if (size < 0) return failed(context, FailedStep::kSource, -errno);
  path[size] = '\0';
  const int source = ::open(path, O_PATH | O_CLOEXEC);
  if (source < 0) return failed(context, FailedStep::kSource, -errno);
  struct stat wanted{}, found{};
  if (::fstat(theirs, &wanted) == 0 && ::fstat(source, &found) == 0 && wanted.st_dev == found.st_dev &&
      wanted.st_ino == found.st_ino)
    return source;
  ::close(source);
  return failed(context, FailedStep::kBindRace, -ESTALE);
}

// Opens what an operation shows, by name as the caller would.
int open_source(RecipeContext& context, const RecipeOp& op) noexcept {
  if (op.fd >= 0) return open_by_its_name(context, op.fd);
  const int source = ::openat(context.cwd, op.source.c_str(), O_PATH | O_CLOEXEC);
  return source < 0 ? failed(context, FailedStep::kSource, -errno) : source;
}

// A detached copy of the source; -1 in `tree` where there is none and need not be.
int capture(RecipeContext& context, const RecipeOp& op, int& tree) noexcept {
  const ScopedFd source(open_source(context, op));
  if (!source.valid()) return source.get() == -ENOENT && op.if_exists ? 0 : source.get();
  int copy = copy_tree(source.get(), AT_RECURSIVE);
  if (copy == -EINVAL && op.fd < 0) {  // a mount of another namespace: by a link in /proc
    const ScopedFd named(open_by_its_name(context, source.get()));
    if (!named.valid()) return named.get();
    copy = copy_tree(named.get(), AT_RECURSIVE);
  }
  if (copy < 0) return failed(context, FailedStep::kBind, copy);
  const std::uint64_t set = MOUNT_ATTR_NOSUID | (op.devices ? 0 : MOUNT_ATTR_NODEV) | (op.read_only ? MOUNT_ATTR_RDONLY : 0);
  const int status = set_attributes(copy, set, AT_RECURSIVE);
  if (status < 0) {
    ::close(copy);
    return failed(context, FailedStep::kBind, status);
  }
  tree = copy;
  return 0;
}

int bind(RecipeContext& context, const RecipeOp& op) noexcept {
  int& captured = context.captured[context.op];
  if (captured < 0) return 0;
  const int tree = std::exchange(captured, -1);
  struct stat facts{};
  const bool directory = ::fstat(tree, &facts) == 0 && S_ISDIR(facts.st_mode);
  const ScopedFd place(directory ? ensure_directory(context, op, 0755) : ensure_file(context, op));
  if (!place.valid()) {
    ::close(tree);
    return place.get();
  }
  const int status = attach(context, tree, place.get());
  return status < 0 ? failed(context, FailedStep::kBind, status) : 0;
}

// --- file systems of our own

int attach_new(RecipeContext& context, const RecipeOp& op, FailedStep at, const char* type, const std::string& options,
               std::uint64_t set) noexcept {
  const ScopedFd place(ensure_directory(context, op, 0755));
  if (!place.valid()) return place.get();
  int status = make_filesystem(type, options, static_cast<unsigned>(set));
  if (status >= 0) note_own(context, status);
  if (status >= 0) status = attach(context, status, place.get());
  return status < 0 ? failed(context, at, status) : 0;
}

// Parts of procfs through which a kernel is steered. It asks for the host's root and nothing else, so they are covered where we are
// that, whatever access(2) says of the directory (which is never writable).
int cover_proc(RecipeContext& context, const RecipeOp& op) noexcept {
  for (const char* name : {"sys", "sysrq-trigger", "irq", "bus"}) {
    const ScopedFd proc(open_inside(context.root, op.dest.c_str(), O_PATH | O_DIRECTORY));
    if (!proc.valid()) return failed(context, FailedStep::kProcCover, proc.get());
    const ScopedFd part(::openat(proc.get(), name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!part.valid()) continue;
    if (context.recipe->real_uid != 0 && ::faccessat(proc.get(), name, W_OK, 0) < 0) continue;
    const int tree = copy_tree(part.get(), AT_RECURSIVE);
    if (tree < 0) return failed(context, FailedStep::kProcCover, tree);
    int status = set_attributes(tree, kQuiet | MOUNT_ATTR_RDONLY, AT_RECURSIVE);
    if (status < 0) ::close(tree);
    else status = attach(context, tree, part.get());
    if (status < 0) return failed(context, FailedStep::kProcCover, status);
  }
  return 0;
}

int show_proc(RecipeContext& context, const RecipeOp& op) noexcept {
  if (context.own_proc) {
    static const std::string none;
    const int status = attach_new(context, op, FailedStep::kProc, "proc", none, kQuiet | MOUNT_ATTR_NOEXEC);
    return status < 0 ? status : cover_proc(context, op);
  }
  const ScopedFd place(ensure_directory(context, op, 0755));
  if (!place.valid()) return place.get();
  int tree = copy_tree(context.proc, AT_RECURSIVE);
  if (tree < 0) return failed(context, FailedStep::kProc, tree);
  int status = set_attributes(tree, kQuiet, AT_RECURSIVE);
  if (status < 0) ::close(tree);
  else status = attach(context, tree, place.get());
  return status < 0 ? failed(context, FailedStep::kProc, status) : cover_proc(context, op);
}

int bind_node(int dev, const char* source, const char* name) noexcept {
  const ScopedFd from(::open(source, O_PATH | O_CLOEXEC));
  if (!from.valid()) return -errno;
  const ScopedFd to(::openat(dev, name, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444));
  if (!to.valid()) return -errno;
  const ScopedFd tree(copy_tree(from.get(), 0));
  if (!tree.valid()) return tree.get();
  if (const int status = set_attributes(tree.get(), MOUNT_ATTR_NOSUID, 0); status < 0) return status;
  return ::move_mount(tree.get(), "", to.get(), "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0 ? -errno : 0;
}

int fill_dev(RecipeContext& context, int dev) noexcept {
  constexpr const char* kNodes[][2] = {{"/dev/null", "null"},     {"/dev/zero", "zero"},       {"/dev/full", "full"},
                                       {"/dev/random", "random"}, {"/dev/urandom", "urandom"}, {"/dev/tty", "tty"}};
  for (const auto& [source, name] : kNodes) {
    if (const int status = bind_node(dev, source, name); status < 0) return status;
  }
  constexpr const char* kLinks[][2] = {{"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"}, {"/proc/self/fd/2", "stderr"},
                                       {"/proc/self/fd", "fd"},      {"/proc/kcore", "core"},       {"pts/ptmx", "ptmx"}};
  for (const auto& [to, name] : kLinks) {
    if (::symlinkat(to, dev, name) < 0) return -errno;
  }
  if (::mkdirat(dev, "shm", 0755) < 0 || ::mkdirat(dev, "pts", 0755) < 0) return -errno;
  static const std::string kOptions("newinstance\0ptmxmode=0666\0mode=0620\0", 36);
  const ScopedFd pts(make_filesystem("devpts", kOptions, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC));
  if (!pts.valid()) return pts.get();
  if (::move_mount(pts.get(), "", dev, "pts", MOVE_MOUNT_F_EMPTY_PATH) < 0) return -errno;
  // The terminal that the command may write to anyhow has a name then.
  const std::string& terminal = context.recipe->terminal;
  return terminal.empty() ? 0 : bind_node(dev, terminal.c_str(), "console");
}

int show_dev(RecipeContext& context, const RecipeOp& op) noexcept {
  static const std::string kOptions("mode=0755\0", 10);
  if (const int status = attach_new(context, op, FailedStep::kDev, "tmpfs", kOptions, kQuiet); status < 0) return status;
  const ScopedFd dev(open_inside(context.root, op.dest.c_str(), O_PATH | O_DIRECTORY));
  const int status = dev.valid() ? fill_dev(context, dev.get()) : dev.get();
  return status < 0 ? failed(context, FailedStep::kDev, status) : 0;
}

// --- content

int copy_data(int from, int to) noexcept {
  char buffer[16384];
  for (;;) {
    const ssize_t got = ::read(from, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got < 0 ? -errno : 0;
    for (ssize_t done = 0; done < got;) {
      const ssize_t wrote = ::write(to, buffer + done, static_cast<std::size_t>(got - done));
      if (wrote < 0 && errno != EINTR) return -errno;
      if (wrote > 0) done += wrote;
    }
  }
}

int make_file(RecipeContext& context, const RecipeOp& op) noexcept {
  const char* last = nullptr;
  const ScopedFd parent(open_parent(context, op, last));
  if (!parent.valid()) return failed(context, FailedStep::kParents, parent.get());
  const ScopedFd file(open_inside(context.root, op.dest.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY, op.perms));
  if (!file.valid()) return failed(context, FailedStep::kFile, file.get());
  const int status = copy_data(op.fd, file.get());
  return status < 0 ? failed(context, FailedStep::kWrite, status) : 0;
}

// A mount of the file `name` of the base.
int make_data(RecipeContext& context, const RecipeOp& op, const char* name) noexcept {
  const ScopedFd file(::openat(context.base, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid()) return failed(context, FailedStep::kWrite, -errno);
  const int status = ::fchmod(file.get(), op.perms) < 0 ? -errno : copy_data(op.fd, file.get());
  if (status < 0) return failed(context, FailedStep::kWrite, status);
  const int tree = ::open_tree(context.base, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  return tree < 0 ? failed(context, FailedStep::kBind, -errno) : tree;
}

int bind_data(RecipeContext& context, const RecipeOp& op) noexcept {
  constexpr char kName[] = "data";
  const int tree = make_data(context, op, kName);
  if (tree < 0) return tree;
  const ScopedFd place(ensure_file(context, op));
  int status = place.valid() ? set_attributes(tree, kQuiet | (op.read_only ? MOUNT_ATTR_RDONLY : 0), 0) : place.get();
  if (status < 0) ::close(tree);
  else status = attach(context, tree, place.get());
  ::unlinkat(context.base, kName, 0);  // only now: what has no name cannot be attached
  if (!place.valid()) return place.get();
  return status < 0 ? failed(context, FailedStep::kBind, status) : 0;
}

int make_symlink(RecipeContext& context, const RecipeOp& op) noexcept {
  const char* last = nullptr;
  const ScopedFd parent(open_parent(context, op, last));
  if (!parent.valid()) return failed(context, FailedStep::kParents, parent.get());
  char name[NAME_MAX + 1];
  if (const int status = copy_name(last, name); status < 0) return failed(context, FailedStep::kSymlink, status);
  if (::symlinkat(op.source.c_str(), parent.get(), name) == 0) return 0;
  if (errno != EEXIST) return failed(context, FailedStep::kSymlink, -errno);
  const ssize_t size = ::readlinkat(parent.get(), name, context.detail, sizeof context.detail);
  if (size < 0) return failed(context, FailedStep::kSymlinkIsNone, -errno);
  context.detail_size = static_cast<int>(size);
  const bool same = op.source.size() == static_cast<std::size_t>(size) &&
                    std::memcmp(op.source.data(), context.detail, static_cast<std::size_t>(size)) == 0;
  return same ? 0 : failed(context, FailedStep::kSymlinkIsOther, -EEXIST);
}

int change_mode(RecipeContext& context, const RecipeOp& op) noexcept {
  const ScopedFd place(open_inside(context.root, op.dest.c_str(), O_PATH));
  if (!place.valid()) return failed(context, FailedStep::kChmod, place.get());
  return ::chmod(DescriptorPath(place.get()).c_str(), op.perms) < 0 ? failed(context, FailedStep::kChmod, -errno) : 0;
}

int make_read_only(RecipeContext& context, const RecipeOp& op) noexcept {
  const ScopedFd place(open_inside(context.root, op.dest.c_str(), O_PATH));
  const int status = place.valid() ? set_attributes(place.get(), kQuiet | MOUNT_ATTR_RDONLY, 0) : place.get();
  return status < 0 ? failed(context, FailedStep::kReadOnly, status) : 0;
}

// --- overlay

// The layers are given by descriptors, whose paths are short and need no escaping.
class OverlayOptions {
 public:
  int add(const char* key, int fd) noexcept {
    const DescriptorPath path(fd);
    return set(FSCONFIG_SET_STRING, key, path.c_str());
  }
  int add_flag(const char* key) noexcept { return set(FSCONFIG_SET_FLAG, key, nullptr); }
  int begin() noexcept {
    fs_ = static_cast<int>(::syscall(SYS_fsopen, "overlay", FSOPEN_CLOEXEC));
    return fs_ < 0 ? -errno : 0;
  }
  // A detached mount.
  int finish(std::uint64_t attributes) noexcept {
    if (const int status = set(FSCONFIG_CMD_CREATE, nullptr, nullptr); status < 0) return status;
    const long mount = ::syscall(SYS_fsmount, fs_, FSMOUNT_CLOEXEC, static_cast<unsigned>(attributes));
    return mount < 0 ? -errno : static_cast<int>(mount);
  }
  int set(unsigned command, const char* key, const char* value) noexcept {
    return ::syscall(SYS_fsconfig, fs_, command, key, value, 0) < 0 ? -errno : 0;
  }
  OverlayOptions() = default;
  OverlayOptions(const OverlayOptions&) = delete;
  OverlayOptions& operator=(const OverlayOptions&) = delete;
  ~OverlayOptions() {
    if (fs_ >= 0) ::close(fs_);
  }

 private:
  int fs_ = -1;
};

constexpr int kMostLayers = 64;

struct LayerFds {
  int fds[kMostLayers + 2];
  int count = 0;
  LayerFds() = default;
  LayerFds(const LayerFds&) = delete;
  LayerFds& operator=(const LayerFds&) = delete;
  ~LayerFds() {
    for (int i = 0; i < count; ++i) ::close(fds[i]);
  }
  int open(int at, const char* path) noexcept {
    if (count == kMostLayers + 2) return -E2BIG;
    const int fd = ::openat(at, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return -errno;
    return fds[count++] = fd;
  }
};

// Top layer first. Linux before 6.5 has no `lowerdir+`: there all go into one option, which the call cuts at 256 bytes.
int add_lower(OverlayOptions& options, const int* fds, int count) noexcept {
  int status = 0;
  for (int i = count - 1; i >= 0 && status == 0; --i) {
    status = options.add("lowerdir+", fds[i]);
    if (status < 0 && i != count - 1) return status;
  }
  if (status == 0) return 0;
  char text[256];
  std::size_t size = 0;
  for (int i = count - 1; i >= 0; --i) {
    const DescriptorPath path(fds[i]);
    const std::size_t length = std::strlen(path.c_str());
    if (size + length + 2 > sizeof text) return -E2BIG;
    if (size > 0) text[size++] = ':';
    std::memcpy(text + size, path.c_str(), length + 1);
    size += length;
  }
  return options.set(FSCONFIG_SET_STRING, "lowerdir", text);
}

int make_overlay(RecipeContext& context, const RecipeOp& op) noexcept {
  const ScopedFd place(ensure_directory(context, op, 0755));
  if (!place.valid()) return place.get();
  LayerFds lower, upper;
  for (const std::string& layer : op.layers) {
    if (const int fd = lower.open(context.cwd, layer.c_str()); fd < 0) return failed(context, FailedStep::kSource, fd);
  }
  if (op.own_upper) {
    char name[] = "upper-00000", work[] = "work-00000";
    for (int i = context.op, digit = 0; digit < 5; ++digit, i /= 10) {
      name[10 - digit] = static_cast<char>('0' + i % 10);
      work[9 - digit] = static_cast<char>('0' + i % 10);
    }
    if (::mkdirat(context.base, name, 0755) < 0 || ::mkdirat(context.base, work, 0755) < 0)
      return failed(context, FailedStep::kOverlay, -errno);
    if (upper.open(context.base, name) < 0 || upper.open(context.base, work) < 0)
      return failed(context, FailedStep::kOverlay, -errno);
  } else if (!op.source.empty()) {
    if (const int fd = upper.open(context.cwd, op.source.c_str()); fd < 0) return failed(context, FailedStep::kSource, fd);
    if (const int fd = upper.open(context.cwd, op.work.c_str()); fd < 0) return failed(context, FailedStep::kSource, fd);
  }
  OverlayOptions options;
  int status = options.begin();
  if (status == 0) status = add_lower(options, lower.fds, lower.count);
  if (status == 0 && upper.count == 2) status = options.add("upperdir", upper.fds[0]);
  if (status == 0 && upper.count == 2) status = options.add("workdir", upper.fds[1]);
  if (status == 0) status = options.add_flag("userxattr");
  if (status == 0) status = options.finish(0);
  if (status >= 0 && (op.own_upper || op.source.empty())) note_own(context, status);
  if (status >= 0) status = attach(context, status, place.get());
  return status < 0 ? failed(context, FailedStep::kOverlay, status) : 0;
}

// --- all of it

int make_directory(RecipeContext& context, const RecipeOp& op) noexcept {
  const int made = ensure_directory(context, op, op.perms);
  if (made < 0) return made;
  ::close(made);
  return 0;
}

int run_op(RecipeContext& context, const RecipeOp& op) noexcept {
  static const std::string none;
  switch (op.kind) {
    case Kind::kBind:
      return bind(context, op);
    case Kind::kOverlay:
      return make_overlay(context, op);
    case Kind::kProc:
      return show_proc(context, op);
    case Kind::kDev:
      return show_dev(context, op);
    case Kind::kTmpfs:
      return attach_new(context, op, FailedStep::kTmpfs, "tmpfs", op.options, kQuiet);
    case Kind::kMqueue:
      return attach_new(context, op, FailedStep::kMqueue, "mqueue", none, 0);
    case Kind::kDirectory:
      return make_directory(context, op);
    case Kind::kFile:
      return make_file(context, op);
    case Kind::kBindData:
      return bind_data(context, op);
    case Kind::kSymlink:
      return make_symlink(context, op);
    case Kind::kReadOnly:
      return make_read_only(context, op);
    case Kind::kChmod:
      return change_mode(context, op);
    case Kind::kHostname:
      return ::sethostname(op.source.data(), op.source.size()) < 0 ? failed(context, FailedStep::kHostname, -errno) : 0;
  }
  return -EINVAL;
}

int check_layers(RecipeContext& context, const RecipeOp& op) noexcept {
  const auto is_there = [&](const std::string& path) noexcept {
    return ::faccessat(context.cwd, path.c_str(), F_OK, AT_EACCESS) == 0;
  };
  for (const std::string& layer : op.layers) {
    if (!is_there(layer)) return failed(context, FailedStep::kSource, -errno);
  }
  if (!op.source.empty() && (!is_there(op.source) || !is_there(op.work))) return failed(context, FailedStep::kSource, -errno);
  return 0;
}

int capture_all(RecipeContext& context) noexcept {
  const auto& ops = context.recipe->ops;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    context.op = static_cast<int>(i);
    int status = 0;
    if (ops[i].kind == Kind::kBind) status = capture(context, ops[i], context.captured[i]);
    else if (ops[i].kind == Kind::kOverlay) status = check_layers(context, ops[i]);
    if (status < 0) return status;
  }
  context.op = -1;
  return 0;
}

int attach_root(RecipeContext& context) noexcept {
  static const std::string kOptions("mode=0755\0", 10);
  context.base = make_filesystem("tmpfs", kOptions, static_cast<unsigned>(kQuiet));
  if (context.base < 0) return context.base;
  note_own(context, context.base);
  if (::move_mount(context.base, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0) return -errno;
  if (::mkdirat(context.base, "root", 0755) < 0) return -errno;
  context.root = make_filesystem("tmpfs", kOptions, static_cast<unsigned>(kQuiet));
  if (context.root < 0) return context.root;
  note_own(context, context.root);
  return ::move_mount(context.root, "", context.base, "root", MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno : 0;
}

int enter_root(RecipeContext& context) noexcept {
  if (::fchdir(context.root) < 0) return -errno;
  if (::syscall(SYS_pivot_root, ".", ".") < 0) return -errno;
  // On the new root lies the old one now, pivot_root(2), "pivot_root(".", ".")", and on that the base.
  for (int i = 0; i < 2; ++i) {
    if (::umount2(".", MNT_DETACH) < 0) return -errno;
  }
  if (::chdir("/") < 0) return -errno;
  // "/.." is what lies on top of the root: it must be the root itself, or something of the host is left there.
  const ScopedFd top(::open("/..", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!top.valid()) return -errno;
  return is_root(context.root, top.get()) ? 0 : -EBUSY;
}

// A descriptor for each bind, until it is attached.
void raise_files(rlimit& old) noexcept {
  if (::getrlimit(RLIMIT_NOFILE, &old) < 0) return;
  const rlimit more{old.rlim_max, old.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &more);
}

}  // namespace

int build_recipe_tree(RecipeContext& context) noexcept {
  // A user namespace that is made together with the mount namespace cuts what would go back to the host; without one we do.
  if (!context.own_users && ::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) < 0)
    return failed(context, FailedStep::kPrivate, -errno);
  rlimit files{};
  raise_files(files);
  if (const int status = capture_all(context); status < 0) return status;
  if (const int status = attach_root(context); status < 0) return failed(context, FailedStep::kRoot, status);
  const auto& ops = context.recipe->ops;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    context.op = static_cast<int>(i);
    if (const int status = run_op(context, ops[i]); status < 0) return status;
  }
  context.op = -1;
  const int status = enter_root(context);
  for (int* fd : {&context.root, &context.base, &context.cwd, &context.stubs}) {
    if (*fd >= 0) ::close(*fd);
    *fd = -1;
  }
  if (files.rlim_max != 0) ::setrlimit(RLIMIT_NOFILE, &files);
  return status < 0 ? failed(context, FailedStep::kPivot, status) : 0;
}

}  // namespace belljar::launch
