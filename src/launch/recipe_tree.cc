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

#include "launch/child.h"
#include "launch/recipe.h"
#include "launch/recipe_child.h"
#include "launch/recipe_stubs.h"
#include "launch/stage.h"

namespace belljar::launch {
namespace {

using At = RecipeFailure::At;
using Kind = RecipeOp::Kind;

constexpr std::uint64_t kQuiet = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

// A descriptor of the child: closed at the end of its block. UniqueFd's close would do, but this one never throws away errno.
class Held {
 public:
  explicit Held(int fd) noexcept : fd_(fd) {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    const int error = errno;
    if (fd_ >= 0) ::close(fd_);
    errno = error;
  }
  int get() const noexcept { return fd_; }
  bool valid() const noexcept { return fd_ >= 0; }

 private:
  int fd_;
};

int open_inside(int root, const char* path, std::uint64_t flags, mode_t mode = 0) noexcept {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.mode = (flags & O_CREAT) != 0 ? mode : 0;
  how.resolve = RESOLVE_IN_ROOT;
  constexpr int kTries = 64;  // a rename on the way makes ".." uncertain, openat2(2)
  long fd = -1;
  for (int i = 0; i < kTries; ++i) {
    fd = ::syscall(SYS_openat2, root, path[0] == '\0' ? "/" : path, &how, sizeof how);
    if (fd >= 0 || errno != EAGAIN) break;
  }
  return fd < 0 ? -errno : static_cast<int>(fd);
}

// Of the last component alone, without slashes behind it.
int copy_name(const char* last, char (&name)[NAME_MAX + 1]) noexcept {
  std::size_t size = 0;
  while (last[size] != '\0' && last[size] != '/') ++size;
  if (size > NAME_MAX) return -ENAMETOOLONG;
  std::memcpy(name, last, size);
  name[size] = '\0';
  return 0;
}

mode_t parent_mode(const RecipeOp& op) noexcept {
  mode_t mode = 0755;
  if ((op.perms & 0070) == 0) mode &= ~mode_t{0050};
  if ((op.perms & 0007) == 0) mode &= ~mode_t{0005};
  return mode;
}

// --- stubs, recipe_stubs.h

// On a file system of the host. One made for this recipe that is not in the list costs some time and no more.
bool on_host(const RecipeContext& context, const struct stat& facts) noexcept {
  for (int i = 0; i < context.own_device_count; ++i) {
    if (context.own_devices[i] == facts.st_dev) return false;
  }
  return true;
}

void note_own(RecipeContext& context, int place) noexcept {
  struct stat facts{};
  if (context.own_device_count < 32 && ::fstat(place, &facts) == 0) context.own_devices[context.own_device_count++] = facts.st_dev;
}

bool mounts(const RecipeOp& op) noexcept {
  return op.kind != Kind::kDirectory && op.kind != Kind::kFile && op.kind != Kind::kSymlink;
}

bool may_be_stub(const RecipeContext& context, const RecipeOp& op, int place, struct stat& facts) noexcept {
  return mounts(op) && context.stubs >= 0 && ::fstat(place, &facts) == 0 && on_host(context, facts);
}

// Somebody's stub, ours or another sandbox's; `facts` are its own then.
bool is_stub_at(const RecipeContext& context, const RecipeOp& op, int place, struct stat& facts) noexcept {
  return may_be_stub(context, op, place, facts) && is_stub(facts);
}

// Where something of the host is shown for writing the name is rather wanted than held, and stays with the directories above:
// bubblewrap's callers may count on it, as its tests do.
bool name_stays(const RecipeOp& op) noexcept { return op.kind == Kind::kBind && !op.read_only; }

// The keeper's descriptor of a directory that is shown: through another mount, where nothing of the recipe is mounted on what is in
// it, and which does not become read-only. Mostly the host has it at the same path. A copy is what we have else; it makes the
// kernel wait when it goes.
int open_for_keeper(int shown) noexcept {
  constexpr char kTop[] = "/root";  // as we see the new root, attach_root()
  constexpr std::size_t kSize = sizeof kTop - 1;
  char path[PATH_MAX];
  const ssize_t size = ::readlink(DescriptorPath(shown).c_str(), path, sizeof path - 1);
  if (size >= static_cast<ssize_t>(kSize) && std::memcmp(path, kTop, kSize) == 0) {
    path[size] = '\0';
    const int same = ::open(path[kSize] == '\0' ? "/" : path + kSize, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat wanted{}, found{};
    if (same >= 0 && ::fstat(shown, &wanted) == 0 && ::fstat(same, &found) == 0 && wanted.st_dev == found.st_dev &&
        wanted.st_ino == found.st_ino)
      return same;
    if (same >= 0) ::close(same);
  }
  return ::open_tree(shown, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
}

// As it is shown, whatever the caller could do by another mount: a recipe changes nothing of what it shows for reading.
bool read_only(int shown) noexcept {
  struct statfs facts{};
  return ::fstatfs(shown, &facts) < 0 || (facts.f_flags & ST_RDONLY) != 0;
}

int hold_in(RecipeContext& context, int parent, const char* name, bool directory) noexcept {
  const Held own(open_for_keeper(parent));
  return own.valid() ? hold_stub(context, own.get(), name, directory) : -EBUSY;
}

// 0: made as a stub, and held. Else the caller makes it, or tells what is returned below 0.
int make_stub(RecipeContext& context, const RecipeOp& op, int parent, const char* name, bool directory) noexcept {
  struct stat facts{};
  if (name_stays(op) || read_only(parent) || !may_be_stub(context, op, parent, facts)) return kNotHeld;
  const int status = hold_in(context, parent, name, directory);
  return status < 0 && status != -EPIPE ? kNotHeld : status;
}

// 0: a mount can lie on `place`, which is the last component of `path`. 1: it was a stub of somebody's, and may be another now.
int share_stub(RecipeContext& context, const RecipeOp& op, int place, int parent, const char* name) noexcept {
  struct stat facts{};
  if (!is_stub_at(context, op, place, facts) || holds_stub(context, facts)) return 0;
  const int status = hold_in(context, parent, name, S_ISDIR(facts.st_mode));
  return status == kNotHeld ? 0 : status < 0 ? status : 1;
}

// `path`, whose last component is `name` in `parent`: opened (O_PATH), made where it is missing, and shared where it is a stub.
// `mode`: of a directory.
int open_or_make(RecipeContext& context, const RecipeOp& op, int parent, const char* path, const char* name, bool directory,
                 mode_t mode) noexcept {
  const std::uint64_t how = directory ? O_PATH | O_DIRECTORY : O_PATH;
  constexpr int kTries = 16;  // it may go as often as somebody's sandbox ends
  for (int i = 0; i < kTries; ++i) {
    const int there = open_inside(context.root, path, how);
    if (there >= 0) {
      const int status = share_stub(context, op, there, parent, name);
      if (status == 0) return there;
      ::close(there);
      if (status < 0) return status;
      continue;
    }
    if (there != -ENOENT) return there;
    const int status = make_stub(context, op, parent, name, directory);
    if (status < 0) return status;
    if (status != kNotHeld) continue;
    if (directory) {
      if (::mkdirat(parent, name, mode) < 0 && errno != EEXIST) return -errno;
    } else {
      const Held made(open_inside(context.root, path, O_RDONLY | O_CREAT | O_NOCTTY | O_NONBLOCK, 0444));
      if (!made.valid()) return made.get();
    }
    return open_inside(context.root, path, how);
  }
  return -EBUSY;
}

// The directory that holds the mount point or file, made where it is missing. `last`: the rest of the path; empty for the root
// itself.
int open_parent(RecipeContext& context, const RecipeOp& op, const char*& last) noexcept {
  const int root = context.root;
  const std::string& path = op.dest;
  char part[PATH_MAX];
  std::size_t end = path.size();
  while (end > 0 && path[end - 1] == '/') --end;
  std::size_t start = end;
  while (start > 0 && path[start - 1] != '/') --start;
  last = path.c_str() + start;
  if (start >= sizeof part) return -ENAMETOOLONG;
  std::memcpy(part, path.data(), start);
  part[start] = '\0';
  int parent = open_inside(root, part, O_PATH | O_DIRECTORY);
  struct stat facts{};
  const bool stub = parent >= 0 && is_stub_at(context, op, parent, facts);
  if (parent != -ENOENT && !stub) return parent;
  if (parent >= 0) ::close(parent);
  // From the top: each directory is opened as the sandbox would, and made in the one before.
  parent = open_inside(root, "/", O_PATH | O_DIRECTORY);
  for (std::size_t i = 0; i < start && parent >= 0;) {
    while (i < start && path[i] == '/') ++i;
    std::size_t next = i;
    while (next < start && path[next] != '/') ++next;
    if (next == i) break;
    std::memcpy(part, path.data(), next);
    part[next] = '\0';
    const int folder = open_or_make(context, op, parent, part, part + i, true, parent_mode(op));
    ::close(parent);
    parent = folder;
    i = next;
  }
  return parent;
}

int set_attributes(int tree, std::uint64_t set, unsigned recursive) noexcept {
  mount_attr attr{};
  attr.attr_set = set;
  attr.propagation = MS_PRIVATE;
  return ::mount_setattr(tree, "", AT_EMPTY_PATH | recursive, &attr, sizeof attr) < 0 ? -errno : 0;
}

bool is_root(int root, int place) noexcept {
  struct statx a{}, b{};
  constexpr unsigned kFacts = STATX_INO | STATX_MNT_ID;
  return ::statx(root, "", AT_EMPTY_PATH, kFacts, &a) == 0 && ::statx(place, "", AT_EMPTY_PATH, kFacts, &b) == 0 &&
         a.stx_mnt_id == b.stx_mnt_id && a.stx_ino == b.stx_ino;
}

// Takes `tree`: it is closed, or becomes the new root where it was put on top of that.
int attach(RecipeContext& context, int tree, int place) noexcept {
  const bool top = is_root(context.root, place);
  if (::move_mount(tree, "", place, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0) {
    const int error = errno;
    ::close(tree);
    return -error;
  }
  if (top) {
    ::close(context.root);
    context.root = tree;
  } else {
    ::close(tree);
  }
  return 0;
}

// --- mount points

// Where the sandbox has no last process, its end is that of its mounts: under what is to lie on a stub comes something of the base,
// whose file system then ends with them. The command never sees it.
int cover_stub(RecipeContext& context, const RecipeOp& op, int place, bool directory) noexcept {
  const char* const name = directory ? "stub.d" : "stub";
  if (directory && ::mkdirat(context.base, name, 0755) < 0 && errno != EEXIST) return -errno;
  if (!directory) {
    const Held file(::openat(context.base, name, O_RDONLY | O_CREAT | O_CLOEXEC, 0444));
    if (!file.valid()) return -errno;
  }
  const int tree = ::open_tree(context.base, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (tree < 0) return -errno;
  if (const int status = set_attributes(tree, kQuiet | MOUNT_ATTR_RDONLY, 0); status < 0) {
    ::close(tree);
    return status;
  }
  const int status = attach(context, tree, place);
  return status < 0 ? status : open_inside(context.root, op.dest.c_str(), O_PATH | (directory ? O_DIRECTORY : 0));
}

// `there` is held, if it is a stub. Takes it.
int mount_point(RecipeContext& context, const RecipeOp& op, int there, bool directory) noexcept {
  struct stat facts{};
  if (!context.ends_with_mounts || !is_stub_at(context, op, there, facts) || !holds_stub(context, facts)) return there;
  const Held place(there);
  const int covered = cover_stub(context, op, place.get(), directory);
  return covered < 0 ? failed(context, At::kBind, covered) : covered;
}

// A mount point for a directory (O_PATH).
int ensure_directory(RecipeContext& context, const RecipeOp& op, mode_t mode) noexcept {
  int there = open_inside(context.root, op.dest.c_str(), O_PATH | O_DIRECTORY);
  struct stat facts{};
  if (there >= 0 && !is_stub_at(context, op, there, facts)) return there;
  if (there >= 0) ::close(there);
  else if (there != -ENOENT) return failed(context, At::kDirectory, there);
  const char* last = nullptr;
  const Held parent(open_parent(context, op, last));
  if (!parent.valid()) return failed(context, At::kParents, parent.get());
  char name[NAME_MAX + 1];
  if (const int status = copy_name(last, name); status < 0) return failed(context, At::kParents, status);
  there = open_or_make(context, op, parent.get(), op.dest.c_str(), name, true, mode);
  return there < 0 ? failed(context, At::kDirectory, there) : mount_point(context, op, there, true);
}

// A mount point for anything else.
int ensure_file(RecipeContext& context, const RecipeOp& op) noexcept {
  int there = open_inside(context.root, op.dest.c_str(), O_PATH);
  struct stat facts{};
  if (there == -ENOENT || (there >= 0 && is_stub_at(context, op, there, facts))) {
    if (there >= 0) ::close(there);
    const char* last = nullptr;
    const Held parent(open_parent(context, op, last));
    if (!parent.valid()) return failed(context, At::kParents, parent.get());
    char name[NAME_MAX + 1];
    if (const int status = copy_name(last, name); status < 0) return failed(context, At::kParents, status);
    there = open_or_make(context, op, parent.get(), op.dest.c_str(), name, false, 0);
  }
  if (there < 0) return failed(context, At::kFile, there);
  if (::fstat(there, &facts) == 0 && S_ISDIR(facts.st_mode)) {
    ::close(there);
    return failed(context, At::kFile, -EISDIR);
  }
  return mount_point(context, op, there, false);
}

int copy_tree(int from, unsigned recursive) noexcept {
  const int tree = ::open_tree(from, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | recursive);
  return tree < 0 ? -errno : tree;
}

// What belongs to the caller's mount namespace (a descriptor of theirs, a link in /proc/self/fd) cannot be copied here, so it is
// looked up by its name and must then be the same.
int open_by_its_name(RecipeContext& context, int theirs) noexcept {
  char path[PATH_MAX];
  const ssize_t size = ::readlink(DescriptorPath(theirs).c_str(), path, sizeof path - 1);
  if (size < 0) return failed(context, At::kSource, -errno);
  path[size] = '\0';
  const int source = ::open(path, O_PATH | O_CLOEXEC);
  if (source < 0) return failed(context, At::kSource, -errno);
  struct stat wanted{}, found{};
  if (::fstat(theirs, &wanted) == 0 && ::fstat(source, &found) == 0 && wanted.st_dev == found.st_dev &&
      wanted.st_ino == found.st_ino)
    return source;
  ::close(source);
  return failed(context, At::kBindRace, -ESTALE);
}

// Opens what an operation shows, by name as the caller would.
int open_source(RecipeContext& context, const RecipeOp& op) noexcept {
  if (op.fd >= 0) return open_by_its_name(context, op.fd);
  const int source = ::openat(context.cwd, op.source.c_str(), O_PATH | O_CLOEXEC);
  return source < 0 ? failed(context, At::kSource, -errno) : source;
}

// A detached copy of the source; -1 in `tree` where there is none and need not be.
int capture(RecipeContext& context, const RecipeOp& op, int& tree) noexcept {
  const Held source(open_source(context, op));
  if (!source.valid()) return source.get() == -ENOENT && op.if_exists ? 0 : source.get();
  int copy = copy_tree(source.get(), AT_RECURSIVE);
  if (copy == -EINVAL && op.fd < 0) {  // a mount of another namespace: by a link in /proc
    const Held named(open_by_its_name(context, source.get()));
    if (!named.valid()) return named.get();
    copy = copy_tree(named.get(), AT_RECURSIVE);
  }
  if (copy < 0) return failed(context, At::kBind, copy);
  const std::uint64_t set = MOUNT_ATTR_NOSUID | (op.devices ? 0 : MOUNT_ATTR_NODEV) | (op.read_only ? MOUNT_ATTR_RDONLY : 0);
  const int status = set_attributes(copy, set, AT_RECURSIVE);
  if (status < 0) {
    ::close(copy);
    return failed(context, At::kBind, status);
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
  const Held place(directory ? ensure_directory(context, op, 0755) : ensure_file(context, op));
  if (!place.valid()) {
    ::close(tree);
    return place.get();
  }
  const int status = attach(context, tree, place.get());
  return status < 0 ? failed(context, At::kBind, status) : 0;
}

// --- file systems of our own

int attach_new(RecipeContext& context, const RecipeOp& op, At at, const char* type, const std::string& options,
               std::uint64_t set) noexcept {
  const Held place(ensure_directory(context, op, 0755));
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
    const Held proc(open_inside(context.root, op.dest.c_str(), O_PATH | O_DIRECTORY));
    if (!proc.valid()) return failed(context, At::kProcCover, proc.get());
    const Held part(::openat(proc.get(), name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!part.valid()) continue;
    if (context.recipe->real_uid != 0 && ::faccessat(proc.get(), name, W_OK, 0) < 0) continue;
    const int tree = copy_tree(part.get(), AT_RECURSIVE);
    if (tree < 0) return failed(context, At::kProcCover, tree);
    int status = set_attributes(tree, kQuiet | MOUNT_ATTR_RDONLY, AT_RECURSIVE);
    if (status < 0) ::close(tree);
    else status = attach(context, tree, part.get());
    if (status < 0) return failed(context, At::kProcCover, status);
  }
  return 0;
}

int show_proc(RecipeContext& context, const RecipeOp& op) noexcept {
  if (context.own_proc) {
    static const std::string none;
    const int status = attach_new(context, op, At::kProc, "proc", none, kQuiet | MOUNT_ATTR_NOEXEC);
    return status < 0 ? status : cover_proc(context, op);
  }
  const Held place(ensure_directory(context, op, 0755));
  if (!place.valid()) return place.get();
  int tree = copy_tree(context.proc, AT_RECURSIVE);
  if (tree < 0) return failed(context, At::kProc, tree);
  int status = set_attributes(tree, kQuiet, AT_RECURSIVE);
  if (status < 0) ::close(tree);
  else status = attach(context, tree, place.get());
  return status < 0 ? failed(context, At::kProc, status) : cover_proc(context, op);
}

int bind_node(int dev, const char* source, const char* name) noexcept {
  const Held from(::open(source, O_PATH | O_CLOEXEC));
  if (!from.valid()) return -errno;
  const Held to(::openat(dev, name, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444));
  if (!to.valid()) return -errno;
  const Held tree(copy_tree(from.get(), 0));
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
  const Held pts(make_filesystem("devpts", kOptions, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC));
  if (!pts.valid()) return pts.get();
  if (::move_mount(pts.get(), "", dev, "pts", MOVE_MOUNT_F_EMPTY_PATH) < 0) return -errno;
  // The terminal that the command may write to anyhow has a name then.
  const std::string& terminal = context.recipe->terminal;
  return terminal.empty() ? 0 : bind_node(dev, terminal.c_str(), "console");
}

int show_dev(RecipeContext& context, const RecipeOp& op) noexcept {
  static const std::string kOptions("mode=0755\0", 10);
  if (const int status = attach_new(context, op, At::kDev, "tmpfs", kOptions, kQuiet); status < 0) return status;
  const Held dev(open_inside(context.root, op.dest.c_str(), O_PATH | O_DIRECTORY));
  const int status = dev.valid() ? fill_dev(context, dev.get()) : dev.get();
  return status < 0 ? failed(context, At::kDev, status) : 0;
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
  const Held parent(open_parent(context, op, last));
  if (!parent.valid()) return failed(context, At::kParents, parent.get());
  const Held file(open_inside(context.root, op.dest.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY, op.perms));
  if (!file.valid()) return failed(context, At::kFile, file.get());
  const int status = copy_data(op.fd, file.get());
  return status < 0 ? failed(context, At::kWrite, status) : 0;
}

// A mount of the file `name` of the base.
int make_data(RecipeContext& context, const RecipeOp& op, const char* name) noexcept {
  const Held file(::openat(context.base, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid()) return failed(context, At::kWrite, -errno);
  const int status = ::fchmod(file.get(), op.perms) < 0 ? -errno : copy_data(op.fd, file.get());
  if (status < 0) return failed(context, At::kWrite, status);
  const int tree = ::open_tree(context.base, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  return tree < 0 ? failed(context, At::kBind, -errno) : tree;
}

int bind_data(RecipeContext& context, const RecipeOp& op) noexcept {
  constexpr char kName[] = "data";
  const int tree = make_data(context, op, kName);
  if (tree < 0) return tree;
  const Held place(ensure_file(context, op));
  int status = place.valid() ? set_attributes(tree, kQuiet | (op.read_only ? MOUNT_ATTR_RDONLY : 0), 0) : place.get();
  if (status < 0) ::close(tree);
  else status = attach(context, tree, place.get());
  ::unlinkat(context.base, kName, 0);  // only now: what has no name cannot be attached
  if (!place.valid()) return place.get();
  return status < 0 ? failed(context, At::kBind, status) : 0;
}

int make_symlink(RecipeContext& context, const RecipeOp& op) noexcept {
  const char* last = nullptr;
  const Held parent(open_parent(context, op, last));
  if (!parent.valid()) return failed(context, At::kParents, parent.get());
  char name[NAME_MAX + 1];
  if (const int status = copy_name(last, name); status < 0) return failed(context, At::kSymlink, status);
  if (::symlinkat(op.source.c_str(), parent.get(), name) == 0) return 0;
  if (errno != EEXIST) return failed(context, At::kSymlink, -errno);
  const ssize_t size = ::readlinkat(parent.get(), name, context.detail, sizeof context.detail);
  if (size < 0) return failed(context, At::kSymlinkIsNone, -errno);
  context.detail_size = static_cast<int>(size);
  const bool same = op.source.size() == static_cast<std::size_t>(size) &&
                    std::memcmp(op.source.data(), context.detail, static_cast<std::size_t>(size)) == 0;
  return same ? 0 : failed(context, At::kSymlinkIsOther, -EEXIST);
}

int change_mode(RecipeContext& context, const RecipeOp& op) noexcept {
  const Held place(open_inside(context.root, op.dest.c_str(), O_PATH));
  if (!place.valid()) return failed(context, At::kChmod, place.get());
  return ::chmod(DescriptorPath(place.get()).c_str(), op.perms) < 0 ? failed(context, At::kChmod, -errno) : 0;
}

int make_read_only(RecipeContext& context, const RecipeOp& op) noexcept {
  const Held place(open_inside(context.root, op.dest.c_str(), O_PATH));
  const int status = place.valid() ? set_attributes(place.get(), kQuiet | MOUNT_ATTR_RDONLY, 0) : place.get();
  return status < 0 ? failed(context, At::kReadOnly, status) : 0;
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
  const Held place(ensure_directory(context, op, 0755));
  if (!place.valid()) return place.get();
  LayerFds lower, upper;
  for (const std::string& layer : op.layers) {
    if (const int fd = lower.open(context.cwd, layer.c_str()); fd < 0) return failed(context, At::kSource, fd);
  }
  if (op.own_upper) {
    char name[] = "upper-00000", work[] = "work-00000";
    for (int i = context.op, digit = 0; digit < 5; ++digit, i /= 10) {
      name[10 - digit] = static_cast<char>('0' + i % 10);
      work[9 - digit] = static_cast<char>('0' + i % 10);
    }
    if (::mkdirat(context.base, name, 0755) < 0 || ::mkdirat(context.base, work, 0755) < 0)
      return failed(context, At::kOverlay, -errno);
    if (upper.open(context.base, name) < 0 || upper.open(context.base, work) < 0) return failed(context, At::kOverlay, -errno);
  } else if (!op.source.empty()) {
    if (const int fd = upper.open(context.cwd, op.source.c_str()); fd < 0) return failed(context, At::kSource, fd);
    if (const int fd = upper.open(context.cwd, op.work.c_str()); fd < 0) return failed(context, At::kSource, fd);
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
  return status < 0 ? failed(context, At::kOverlay, status) : 0;
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
      return attach_new(context, op, At::kTmpfs, "tmpfs", op.options, kQuiet);
    case Kind::kMqueue:
      return attach_new(context, op, At::kMqueue, "mqueue", none, 0);
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
      return ::sethostname(op.source.data(), op.source.size()) < 0 ? failed(context, At::kHostname, -errno) : 0;
  }
  return -EINVAL;
}

int check_layers(RecipeContext& context, const RecipeOp& op) noexcept {
  const auto is_there = [&](const std::string& path) noexcept {
    return ::faccessat(context.cwd, path.c_str(), F_OK, AT_EACCESS) == 0;
  };
  for (const std::string& layer : op.layers) {
    if (!is_there(layer)) return failed(context, At::kSource, -errno);
  }
  if (!op.source.empty() && (!is_there(op.source) || !is_there(op.work))) return failed(context, At::kSource, -errno);
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
  const Held top(::open("/..", O_PATH | O_DIRECTORY | O_CLOEXEC));
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
    return failed(context, At::kPrivate, -errno);
  rlimit files{};
  raise_files(files);
  if (const int status = capture_all(context); status < 0) return status;
  if (const int status = attach_root(context); status < 0) return failed(context, At::kRoot, status);
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
  return status < 0 ? failed(context, At::kPivot, status) : 0;
}

}  // namespace belljar::launch
