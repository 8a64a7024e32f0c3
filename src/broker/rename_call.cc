// rename, renameat, renameat2.
//
// Two locks on Context::directories are possible, and the choice is made before anything is judged. Most
// renames hold it shared. It is owned alone where (1) a directory gets a new path, since what others judged
// under its old path would be carried along, (2) the new name is a marker of a git directory, since two
// markers made at once under shared locks would each be judged as the first, or (3) some rule has a say on
// the new name. Taking the lock alone means giving the shared one up, so everything that was found is found
// again afterwards.
//
// Then each direction is admitted (admit): may the old name go away; what stood there is remembered, for it
// may be put back (former_contents.h); may the new name come; and what stands below a directory is judged
// under its new names (admit_tree). RENAME_EXCHANGE is two directions. A file that gets a control name of git
// is not renamed at all: its content is judged and a fresh copy installed (install_copy), because a
// descriptor or a hard link of the judged file could write to it afterwards; only then is the old name
// removed.
//
// What the kernel would refuse (ENOENT, EEXIST, EBUSY of a mount point) is answered by looking, in the
// kernel's order, and not by trying the call: a moment later the same call may succeed, without having been
// judged. Mount points are looked for here because the kernel answers EBUSY only for mounts of the calling
// thread's mount namespace, and the broker is in another (fs/namei.c, is_local_mountpoint).
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/paths.h"
#include "broker/control_files.h"
#include "broker/file_call.h"
#include "broker/file_calls.h"
#include "broker/start_paths.h"

namespace belljar::broker {
namespace {

struct Rename {
  FileCall& file;
  std::string old_path, new_path;
  StartDir old_start, new_start;
  int new_base = -1;  // where the new path starts, one of the two
  unsigned flags = 0;
  int second = 0;  // what was wrong with the second argument; it counts only after the first was found
  DirEntry from, to;
  mode_t source = 0;
  int missing = 0;          // what the kernel says of the source: 0, or -errno
  bool from_mount = false;  // something is mounted on the source
};

int read_arguments(Rename& rename) {
  FileCall& file = rename.file;
  const auto& args = file.call.args;
  const bool at = file.call.number != SYS_rename;
  if (file.call.number == SYS_renameat2) rename.flags = static_cast<unsigned>(args[4]);
  constexpr unsigned kKnown = RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT;
  if ((rename.flags & ~kKnown) != 0) return -EINVAL;
  if ((rename.flags & RENAME_EXCHANGE) != 0 && (rename.flags & (RENAME_NOREPLACE | RENAME_WHITEOUT)) != 0) return -EINVAL;
  const int first = file.read_paths(args[at ? 1 : 0], rename.old_path, args[at ? 3 : 1], rename.new_path, rename.second);
  if (first != 0) return first;
  if (rename.old_path.empty()) return -ENOENT;
  if (const int status = file.open_start(at ? args[0] : kFromCwd, rename.old_path, rename.old_start); status != 0) return status;
  int& second = rename.second;
  if (second == 0 && rename.new_path.empty()) second = -ENOENT;
  const bool same_start = rename.old_start.fd.valid() && (!at || static_cast<int>(args[0]) == static_cast<int>(args[2]));
  if (second == 0 && !same_start) second = file.open_start(at ? args[2] : kFromCwd, rename.new_path, rename.new_start);
  rename.new_base = same_start ? rename.old_start.fd.get() : rename.new_start.fd.get();
  return 0;
}

// The new name stands beside the old one by its text, and no link was on the way there.
bool in_same_directory(const Rename& rename) {
  const auto above = [](std::string_view path) { return path.substr(0, path.rfind('/') + 1); };
  const bool one_base = rename.old_path.starts_with('/') || rename.new_base == rename.old_start.fd.get();
  return one_base && !rename.from.dir_path.empty() && !rename.old_path.ends_with('/') && !rename.new_path.ends_with('/') &&
         above(rename.old_path) == above(rename.new_path);
}

OrErrno<DirEntry> find_target(Rename& rename) {
  if (!in_same_directory(rename)) return rename.file.resolver().parent(rename.new_base, rename.new_path);
  DirEntry to;
  to.dir = rename.from.dir;
  to.dir_path = rename.from.dir_path;
  to.name = file_name(rename.new_path);
  return to;
}

int find(Rename& rename) {
  const auto barred = [&](Act act, int start, const std::string& path, int error) {
    return rename.file.explain_way(act, start, path, PathResolver::Last::kStay, -error);
  };
  auto from = rename.file.resolver().parent(rename.old_start.fd.get(), rename.old_path);
  if (!from) return barred(Act::kRenameFrom, rename.old_start.fd.get(), rename.old_path, from.error());
  rename.from = *std::move(from);
  // The kernel may not even look for a name there, and says so before it comes to the second path.
  const auto either = [&](int status) { return ::faccessat(rename.from.dir, ".", X_OK, AT_EACCESS) != 0 ? -errno : status; };
  if (rename.second != 0) return either(rename.second);
  auto to = find_target(rename);
  if (!to) return either(barred(Act::kRenameTo, rename.new_base, rename.new_path, to.error()));
  rename.to = *std::move(to);
  struct statx facts{};
  const std::string name(rename.from.bare());
  const bool found = ::statx(rename.from.dir, name.c_str(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE, &facts) == 0;
  rename.missing = found ? 0 : -errno;
  rename.source = found ? facts.stx_mode : 0;
  rename.from_mount = found && (facts.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  return 0;
}

mode_t type_at(const DirEntry& entry) {
  struct stat now{};
  const std::string name(entry.bare());
  return ::fstatat(entry.dir, name.c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0 ? now.st_mode & S_IFMT : 0;
}

bool in_one_mount(int one, int other) {
  struct statx a{}, b{};
  const bool known = ::statx(one, "", AT_EMPTY_PATH, kMountId, &a) == 0 && ::statx(other, "", AT_EMPTY_PATH, kMountId, &b) == 0;
  return !known || a.stx_mnt_id == b.stx_mnt_id;
}

// One of the two names is a mount point, and keeps its name: EBUSY. Between two mounts the kernel says EXDEV first.
bool is_held(const Rename& rename) {
  const bool names = rename.from.is_name() && rename.to.is_name();
  const bool mounted = names && (rename.from_mount || is_mount_point(rename.to.dir, std::string(rename.to.bare())));
  return mounted && rename.missing == 0 && in_one_mount(rename.from.dir, rename.to.dir);
}

int perform(const Rename& rename) {
  if (is_held(rename)) return -EBUSY;
  const long status =
      ::syscall(SYS_renameat2, rename.from.dir, rename.from.name.c_str(), rename.to.dir, rename.to.name.c_str(), rename.flags);
  return status == 0 ? 0 : -errno;
}

// A file that gets a control name: our copy of its content goes there, and the old name goes away.
int install_copy(Rename& rename, const Ruling& ruling) {
  FileCall& file = rename.file;
  if (!S_ISREG(rename.source) || rename.flags != (rename.flags & RENAME_NOREPLACE)) {
    return file.refuse(Act::kRenameTo, rename.to.path(), ruling);
  }
  if (type_at(rename.to) == S_IFDIR) return perform(rename);  // EISDIR
  const std::string name(rename.from.bare());
  if (is_mount_point(rename.from.dir, name)) return file.explain(Act::kRenameFrom, rename.from, -EBUSY);
  const auto content = read_control_file(rename.from.dir, name, ruling.git);
  if (!content) return file.refuse(Act::kRenameTo, rename.to.path(), ruling, "git's control files are read up to a size");
  const UniqueFd like(::openat(rename.from.dir, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  const FreshFile fresh{.act = Act::kRenameTo, .content = *content, .like = like.get(), .mode = 0644, .rename_flags = rename.flags};
  if (const int status = judge_and_install(file, rename.to, ruling, fresh); status != 0) return status;
  return ::unlinkat(rename.from.dir, name.c_str(), 0) == 0 ? 0 : -errno;
}

// One direction: `from`, of that type, gets the name of `to`. 0: go on; 1: done.
int admit(Rename& rename, DirEntry& from, DirEntry& to, mode_t type) {
  FileCall& file = rename.file;
  const bool is_dir = type == S_IFDIR;
  Ruling leaves = file.rule(Act::kRenameFrom, from, is_dir);
  if (leaves.answer == Answer::kAllow) leaves = file.removal_rule(from);
  if (leaves.answer != Answer::kAllow) return file.refuse(Act::kRenameFrom, from.path(), leaves);
  if (is_dir) remember_directory(file, from);
  else if (type == S_IFREG) remember_file(file, from);
  Ruling arrives = file.rule(Act::kRenameTo, to, is_dir);
  if (arrives.answer == Answer::kAllow && type == S_IFLNK) arrives = file.rule(Act::kSymlink, to, false);
  if (arrives.answer == Answer::kAllow) return is_dir ? admit_tree(file, from, to, arrives) : 0;
  if (arrives.answer == Answer::kMakesGitDir) {
    if (const int status = admit_git_dir(file, Act::kRenameTo, to, arrives); status != 0) return status;
    return is_dir ? admit_tree(file, from, to, arrives) : 0;
  }
  if (arrives.answer == Answer::kRefuse || (rename.flags & RENAME_EXCHANGE) != 0) {
    return file.refuse(Act::kRenameTo, to.path(), arrives);
  }
  const int status = install_copy(rename, arrives);
  return status == 0 ? 1 : status;
}

// Whatever stands at the old name, file, link or directory, may get the new one without a look at it.
bool is_harmless(Rename& rename) {
  FileCall& file = rename.file;
  const bool exchange = (rename.flags & RENAME_EXCHANGE) != 0;
  const auto free = [&](DirEntry& from, DirEntry& to) {
    return file.rule(Act::kRenameTo, to, false).answer == Answer::kAllow &&
           file.rule(Act::kRenameTo, to, true).answer == Answer::kAllow &&
           file.rule(Act::kSymlink, to, false).answer == Answer::kAllow &&
           file.context.options.rules->must_walk(from.path(), to.path(), DirSurroundings(to.dir)) == WalkScope::kNone;
  };
  return free(rename.from, rename.to) && (!exchange || free(rename.to, rename.from));
}

int explained(Rename& rename, int status) {
  FileCall& file = rename.file;
  if (rename.missing != 0) return status;
  if (const int answer = file.explain_hidden(Act::kRenameFrom, rename.from, status); file.told()) return answer;
  if (status == -EBUSY && rename.from_mount) return file.explain(Act::kRenameFrom, rename.from, status);
  return file.explain(Act::kRenameTo, rename.to, status);
}

// What the kernel would refuse is answered here and not by trying: what it refuses now it may not refuse a moment later.
int judge_and_perform(Rename& rename) {
  FileCall& file = rename.file;
  const bool exchange = (rename.flags & RENAME_EXCHANGE) != 0;
  if (file.judged() && rename.from.is_name() && rename.to.is_name()) {
    if (rename.missing != 0) return rename.missing;
    const auto target_exists = [&] { return exists_at(rename.to.dir, std::string(rename.to.bare())); };
    if (exchange && !target_exists()) return -ENOENT;
    if ((rename.flags & RENAME_NOREPLACE) != 0 && target_exists()) return -EEXIST;
    int status = admit(rename, rename.from, rename.to, rename.source & S_IFMT);
    if (status == 0 && exchange) status = admit(rename, rename.to, rename.from, type_at(rename.to));
    // A mask cannot be looked through: that it is one is what is to be said.
    if (status < 0 && !file.told()) return explained(rename, is_held(rename) ? -EBUSY : status);
    if (status != 0) return status == 1 ? 0 : status;
  }
  return explained(rename, perform(rename));
}

}  // namespace

int perform_rename(FileCall& file) {
  Rename rename{.file = file,
                .old_path = {},
                .new_path = {},
                .old_start = {},
                .new_start = {},
                .new_base = -1,
                .flags = 0,
                .from = {},
                .to = {}};
  if (const int status = read_arguments(rename); status != 0) return status;
  if (const int status = file.begin(); status != 0) return status;
  if (const int status = file.share_directories(); status != 0) return status;
  if (const int status = find(rename); status != 0) return status;
  if (!file.judged()) {
    const int status = perform(rename);
    file.context.starts.forget_all();
    return status;
  }
  const bool moves_directory = S_ISDIR(rename.source) || (rename.flags & RENAME_EXCHANGE) != 0;
  if (moves_directory || is_git_marker(rename.to.bare()) || !is_harmless(rename)) {
    // Alone, and everything anew: what was found may have changed while nobody held it.
    if (const int status = file.own_directories(); status != 0) return status;
    if (const int status = find(rename); status != 0) return status;
  }
  return judge_and_perform(rename);
}

}  // namespace belljar::broker
