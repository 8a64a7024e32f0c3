#include "launch/recipe_mount_points.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "launch/recipe.h"
#include "launch/recipe_child.h"
#include "launch/recipe_stubs.h"

namespace belljar::launch {
namespace {

using FailedStep = RecipeFailure::FailedStep;
using Kind = RecipeOp::Kind;

mode_t parent_mode(const RecipeOp& op) noexcept {
  mode_t mode = 0755;
  if ((op.perms & 0070) == 0) mode &= ~mode_t{0050};
  if ((op.perms & 0007) == 0) mode &= ~mode_t{0005};
  return mode;
}

// On a file system of the host. One made for this recipe that is not in the list costs some time and no more.
bool on_host(const RecipeContext& context, const struct stat& facts) noexcept {
  for (int i = 0; i < context.own_device_count; ++i) {
    if (context.own_devices[i] == facts.st_dev) return false;
  }
  return true;
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
  const ScopedFd own(open_for_keeper(parent));
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
      const ScopedFd made(open_inside(context.root, path, O_RDONLY | O_CREAT | O_NOCTTY | O_NONBLOCK, 0444));
      if (!made.valid()) return made.get();
    }
    return open_inside(context.root, path, how);
  }
  return -EBUSY;
}

// Where the sandbox has no last process, its end is that of its mounts: under what is to lie on a stub comes something of the base,
// whose file system then ends with them. The command never sees it.
int cover_stub(RecipeContext& context, const RecipeOp& op, int place, bool directory) noexcept {
  const char* const name = directory ? "stub.d" : "stub";
  if (directory && ::mkdirat(context.base, name, 0755) < 0 && errno != EEXIST) return -errno;
  if (!directory) {
    const ScopedFd file(::openat(context.base, name, O_RDONLY | O_CREAT | O_CLOEXEC, 0444));
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
  const ScopedFd place(there);
  const int covered = cover_stub(context, op, place.get(), directory);
  return covered < 0 ? failed(context, FailedStep::kBind, covered) : covered;
}

}  // namespace

int open_inside(int root, const char* path, std::uint64_t flags, mode_t mode) noexcept {
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

int copy_name(const char* last, char (&name)[NAME_MAX + 1]) noexcept {
  std::size_t size = 0;
  while (last[size] != '\0' && last[size] != '/') ++size;
  if (size > NAME_MAX) return -ENAMETOOLONG;
  std::memcpy(name, last, size);
  name[size] = '\0';
  return 0;
}

void note_own(RecipeContext& context, int place) noexcept {
  struct stat facts{};
  if (context.own_device_count < 32 && ::fstat(place, &facts) == 0) context.own_devices[context.own_device_count++] = facts.st_dev;
}

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

int ensure_directory(RecipeContext& context, const RecipeOp& op, mode_t mode) noexcept {
  int there = open_inside(context.root, op.dest.c_str(), O_PATH | O_DIRECTORY);
  struct stat facts{};
  if (there >= 0 && !is_stub_at(context, op, there, facts)) return there;
  if (there >= 0) ::close(there);
  else if (there != -ENOENT) return failed(context, FailedStep::kDirectory, there);
  const char* last = nullptr;
  const ScopedFd parent(open_parent(context, op, last));
  if (!parent.valid()) return failed(context, FailedStep::kParents, parent.get());
  char name[NAME_MAX + 1];
  if (const int status = copy_name(last, name); status < 0) return failed(context, FailedStep::kParents, status);
  there = open_or_make(context, op, parent.get(), op.dest.c_str(), name, true, mode);
  return there < 0 ? failed(context, FailedStep::kDirectory, there) : mount_point(context, op, there, true);
}

int ensure_file(RecipeContext& context, const RecipeOp& op) noexcept {
  int there = open_inside(context.root, op.dest.c_str(), O_PATH);
  struct stat facts{};
  if (there == -ENOENT || (there >= 0 && is_stub_at(context, op, there, facts))) {
    if (there >= 0) ::close(there);
    const char* last = nullptr;
    const ScopedFd parent(open_parent(context, op, last));
    if (!parent.valid()) return failed(context, FailedStep::kParents, parent.get());
    char name[NAME_MAX + 1];
    if (const int status = copy_name(last, name); status < 0) return failed(context, FailedStep::kParents, status);
    there = open_or_make(context, op, parent.get(), op.dest.c_str(), name, false, 0);
  }
  if (there < 0) return failed(context, FailedStep::kFile, there);
  if (::fstat(there, &facts) == 0 && S_ISDIR(facts.st_mode)) {
    ::close(there);
    return failed(context, FailedStep::kFile, -EISDIR);
  }
  return mount_point(context, op, there, false);
}

}  // namespace belljar::launch
