// mkdir, mknod, symlink, unlink, rmdir, link: calls that make or remove a name.
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "broker/control_files.h"
#include "broker/file_call.h"
#include "broker/file_calls.h"
#include "kernel/sys.h"

namespace belljar::broker {
namespace {

// A path argument with where it starts.
struct PathArgument {
  std::string path;
  StartDir start;
};

int read_argument(FileCall& file, PathArgument& argument, std::uint64_t dirfd, std::uint64_t address) {
  if (const int status = file.read_path(address, argument.path); status != 0) return status;
  if (argument.path.empty()) return -ENOENT;
  return file.open_start(dirfd, argument.path, argument.start);
}

// For calls that make a name: what is there already is the kernel's to say. `rule` says what the rules say of a place.
template <class Rule, class Perform>
int make_name(FileCall& file, Act act, PathArgument& argument, Rule rule, Perform perform) {
  if (const int status = file.begin(); status != 0) return status;
  if (const int status = file.share_directories(); status != 0) return status;
  auto entry = file.resolver().parent(argument.start.fd.get(), argument.path);
  if (!entry) return file.explain_way(act, argument.start.fd.get(), argument.path, PathResolver::Last::kStay, -entry.error());
  if (const int status = file.own_for_marker(*entry); status != 0) return status;
  const auto judge = [&]() -> Ruling { return rule(*entry); };
  Ruling ruling = judge();
  if (ruling.answer != Answer::kAllow) {
    if (exists_at(entry->dir, std::string(entry->bare()))) return -EEXIST;
    if (ruling.answer != Answer::kMakesGitDir) return file.refuse(act, entry->path(), ruling);
    if (const int status = file.own_directories(); status != 0) return status;
    entry->dir_path.clear();  // it may have moved while nobody held it
    if (const int status = admit_git_dir(file, act, *entry, judge()); status != 0) return status;
  }
  file.adopt_umask();
  return file.explain(act, *entry, perform(*entry));
}

// What mknod(2) says of a type before it looks at the path.
int check_type(mode_t type) {
  if (type == S_IFDIR) return -EPERM;
  const bool known = type == 0 || type == S_IFREG || type == S_IFIFO || type == S_IFSOCK || type == S_IFCHR || type == S_IFBLK;
  return known ? 0 : -EINVAL;
}

int make_node(FileCall& file, PathArgument& argument, mode_t mode, std::uint64_t device) {
  const mode_t type = mode & S_IFMT;
  const Act act = type == 0 || type == S_IFREG ? Act::kCreate : Act::kMknod;
  const auto rule = [&](DirEntry& entry) { return file.rule(act, entry, false); };
  return make_name(file, act, argument, rule, [&](const DirEntry& entry) {
    return result_of(static_cast<int>(::syscall(SYS_mknodat, entry.dir, entry.name.c_str(), mode, static_cast<unsigned>(device))));
  });
}

int remove_name(FileCall& file, PathArgument& argument, int flags) {
  const Act act = flags != 0 ? Act::kRmdir : Act::kUnlink;
  if (const int status = file.begin(); status != 0) return status;
  if (const int status = file.share_directories(); status != 0) return status;
  auto entry = file.resolver().parent(argument.start.fd.get(), argument.path);
  if (!entry) return file.explain_way(act, argument.start.fd.get(), argument.path, PathResolver::Last::kStay, -entry.error());
  if (entry->is_root) return flags != 0 ? -EBUSY : -EISDIR;
  Ruling ruling = file.rule(act, *entry, flags != 0);
  if (ruling.answer == Answer::kAllow) ruling = file.removal_rule(*entry);
  if (ruling.answer != Answer::kAllow) {
    if (!exists_at(entry->dir, std::string(entry->bare()))) return -ENOENT;
    return file.refuse(act, entry->path(), ruling);
  }
  if (entry->is_name() && is_mount_point(entry->dir, std::string(entry->bare()))) return file.explain(act, *entry, -EBUSY);
  if (act == Act::kUnlink) remember_file(file, *entry);
  return file.explain(act, *entry, result_of(::unlinkat(entry->dir, entry->name.c_str(), flags)));
}

// What linkat(2) links: a name, or a file that a descriptor or a followed link leads to.
struct Source {
  DirEntry entry;
  UniqueFd file;
};

int find_source(FileCall& file, const PathArgument& from, int flags, Source& source) {
  const auto not_found = [&](PathResolver::Last last, int error) {
    return file.explain_way(Act::kHardLink, from.start.fd.get(), from.path, last, -error);
  };
  if (from.path.empty()) {
    file.permissions().narrow();  // it may be on a /proc
    source.file = UniqueFd(::fcntl(from.start.fd.get(), F_DUPFD_CLOEXEC, 0));
    return source.file.valid() ? 0 : -errno;
  }
  if ((flags & AT_SYMLINK_FOLLOW) != 0 || from.path.ends_with('/')) {
    auto found = file.resolver().object(from.start.fd.get(), from.path, PathResolver::Last::kFollow);
    if (!found) return not_found(PathResolver::Last::kFollow, found.error());
    source.file = *std::move(found);
    return 0;
  }
  auto found = file.resolver().parent(from.start.fd.get(), from.path);
  if (!found) return not_found(PathResolver::Last::kStay, found.error());
  source.entry = *std::move(found);
  struct stat now{};
  return result_of(::fstatat(source.entry.dir, source.entry.name.c_str(), &now, AT_SYMLINK_NOFOLLOW));
}

// The name by which a file was reached, judged like any other; none for what has no name.
Ruling rule_on_source(FileCall& file, Source& source, std::string& path) {
  if (!source.file.valid()) {
    path = source.entry.path();
    return file.rule(Act::kHardLink, source.entry, false);
  }
  path = path_of(source.file.get());
  if (file.judged() && path.empty()) return FileCall::unnamed();
  const std::size_t slash = path.rfind('/');
  struct stat now{};
  if (!file.judged() || slash == std::string::npos || ::fstat(source.file.get(), &now) != 0 || now.st_nlink == 0) return {};
  auto parent = file.resolver().parent(-1, path);
  if (!parent) return {.answer = Answer::kRefuse, .errnum = EACCES, .rule = "filesystem.protect"};
  return file.rule(Act::kHardLink, *parent, false);
}

// A link may not be linked to where none may be made. A file that is linked there is held first: nobody puts a link in its place.
// -errno where it is a link; 0: go on.
int refuse_links(FileCall& file, Source& source, DirEntry& to) {
  const Ruling ruling = file.rule(Act::kSymlink, to, false);
  if (ruling.answer == Answer::kAllow) return 0;
  if (!source.file.valid()) {
    source.file = UniqueFd(::openat(source.entry.dir, source.entry.name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!source.file.valid()) return -errno;
  }
  struct stat now{};
  if (::fstat(source.file.get(), &now) != 0) return -errno;
  return S_ISLNK(now.st_mode) ? file.refuse(Act::kSymlink, to.path(), ruling) : 0;
}

// A file that only lower layers of an overlay hold is copied when it is linked, and its number (st_ino) changes unless the kernel
// notes where the copy came from: for root's mounts, and files of one name (overlayfs.rst, "Inode properties", "Hard links"). Who
// compares the two names afterwards would find different files, and git clone gives up. EXDEV is what programs know: they copy.
bool changes_inode(FileCall& file, Source& source) {
  const int upper = file.context.upper.get();
  if (upper < 0) return false;
  const std::string path = source.file.valid() ? path_of(source.file.get()) : source.entry.path();
  const std::string& workspace = file.context.options.overlay->path;
  if (!path.starts_with(workspace) || path.size() <= workspace.size() + 1 || path[workspace.size()] != '/') return false;
  constexpr unsigned kWanted = STATX_TYPE | STATX_NLINK | STATX_MNT_ID;
  struct statx now{}, around{};
  const bool open = source.file.valid();
  if (::statx(open ? source.file.get() : source.entry.dir, open ? "" : source.entry.name.c_str(),
              AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, kWanted, &now) != 0 ||
      ::statx(file.context.root, workspace.c_str() + 1, AT_SYMLINK_NOFOLLOW, STATX_MNT_ID, &around) != 0)
    return false;
  const bool of_root = file.context.options.uid != static_cast<uid_t>(-1);
  const bool in_overlay = now.stx_mnt_id == around.stx_mnt_id;  // and not in something else that is mounted below
  if (!in_overlay || now.stx_nlink == 0 || S_ISDIR(now.stx_mode) || (of_root && now.stx_nlink == 1)) return false;
  open_how how{};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  const UniqueFd copied(kernel::sys::openat2(upper, path.c_str() + workspace.size() + 1, how));
  return !copied.valid() && (errno == ENOENT || errno == ENOTDIR);
}

int explain_source(FileCall& file, Source& source, int status) {
  if (!source.file.valid()) return file.explain_hidden(Act::kHardLink, source.entry, status);
  const std::string path = status == 0 ? "" : path_of(source.file.get());
  auto entry = path.starts_with('/') ? file.resolver().parent(-1, path) : OrErrno<DirEntry>(errno_is(ENOENT));
  return entry ? file.explain_hidden(Act::kHardLink, *entry, status) : status;
}

int link_names(FileCall& file, const PathArgument& from, PathArgument& to, int flags) {
  if (const int status = file.begin(); status != 0) return status;
  if (const int status = file.share_directories(); status != 0) return status;
  Source source;
  if (const int status = find_source(file, from, flags, source); status != 0) return status;
  auto entry = file.resolver().parent(to.start.fd.get(), to.path);
  if (!entry) return file.explain_way(Act::kHardLink, to.start.fd.get(), to.path, PathResolver::Last::kStay, -entry.error());
  if (const int status = file.own_for_marker(*entry, &source.entry); status != 0) return status;
  std::string old_path;
  Ruling ruling = rule_on_source(file, source, old_path);
  std::string target = old_path;
  if (ruling.answer == Answer::kAllow) {
    ruling = file.rule(Act::kHardLink, *entry, false);
    target = ruling.answer != Answer::kAllow ? entry->path() : "";
  }
  if (ruling.answer != Answer::kAllow) {
    if (exists_at(entry->dir, std::string(entry->bare()))) return -EEXIST;
    return file.refuse(Act::kHardLink, target, ruling);
  }
  if (const int refused = file.judged() && entry->is_name() ? refuse_links(file, source, *entry) : 0; refused != 0) return refused;
  if (changes_inode(file, source)) return exists_at(entry->dir, std::string(entry->bare())) ? -EEXIST : -EXDEV;
  int status = 0;
  if (source.file.valid()) {
    status = ::linkat(AT_FDCWD, own_link(source.file.get()).c_str(), entry->dir, entry->name.c_str(), AT_SYMLINK_FOLLOW);
  } else {
    status = ::linkat(source.entry.dir, source.entry.name.c_str(), entry->dir, entry->name.c_str(), 0);
  }
  status = result_of(status);
  if (const int answer = explain_source(file, source, status); file.told()) return answer;
  return file.explain(Act::kHardLink, *entry, status);
}

// cp -r makes a link like that in a hidden name's place. Following it notes that the name was used (runtime/used_names.h).
int copy_mask(FileCall& file, std::string_view text) {
  (void)file.resolver().object(-1, text, PathResolver::Last::kFollow);
  return -EACCES;
}

}  // namespace

int perform_mkdir(FileCall& file) {
  const bool at = file.call.number == SYS_mkdirat;
  const auto& args = file.call.args;
  PathArgument argument;
  if (const int status = read_argument(file, argument, at ? args[0] : kFromCwd, args[at ? 1 : 0]); status != 0) return status;
  const auto mode = static_cast<mode_t>(args[at ? 2 : 1] & 0xffffU);
  const auto rule = [&](DirEntry& entry) { return file.rule(Act::kMkdir, entry, true); };
  return make_name(file, Act::kMkdir, argument, rule,
                   [&](const DirEntry& entry) { return result_of(::mkdirat(entry.dir, entry.name.c_str(), mode)); });
}

int perform_mknod(FileCall& file) {
  const bool at = file.call.number == SYS_mknodat;
  const auto& args = file.call.args;
  PathArgument argument;
  const auto mode = static_cast<mode_t>(args[at ? 2 : 1] & 0xffffU);
  if (const int status = check_type(mode & S_IFMT); status != 0) return status;
  if (const int status = read_argument(file, argument, at ? args[0] : kFromCwd, args[at ? 1 : 0]); status != 0) return status;
  return make_node(file, argument, mode, args[at ? 3 : 2]);
}

int perform_symlink(FileCall& file) {
  const bool at = file.call.number == SYS_symlinkat;
  const auto& args = file.call.args;
  std::string text;
  PathArgument argument;
  if (const int status = file.read_path(args[0], text); status != 0) return status;
  if (text.empty()) return -ENOENT;
  if (const int status = read_argument(file, argument, at ? args[1] : kFromCwd, args[at ? 2 : 1]); status != 0) return status;
  const auto rule = [&](DirEntry& entry) { return file.rule_link(entry, text); };
  return make_name(file, Act::kSymlink, argument, rule, [&](const DirEntry& entry) {
    return is_mask(text) ? copy_mask(file, text) : result_of(::symlinkat(text.c_str(), entry.dir, entry.name.c_str()));
  });
}

int perform_unlink(FileCall& file) {
  const auto& args = file.call.args;
  const bool at = file.call.number == SYS_unlinkat;
  const int flags = at ? static_cast<int>(args[2]) : file.call.number == SYS_rmdir ? AT_REMOVEDIR : 0;
  if ((flags & ~AT_REMOVEDIR) != 0) return -EINVAL;
  PathArgument argument;
  if (const int status = read_argument(file, argument, at ? args[0] : kFromCwd, args[at ? 1 : 0]); status != 0) return status;
  return remove_name(file, argument, flags);
}

int perform_link(FileCall& file) {
  const auto& args = file.call.args;
  const bool at = file.call.number == SYS_linkat;
  const int flags = at ? static_cast<int>(args[4]) : 0;
  if ((flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH)) != 0) return -EINVAL;
  PathArgument from, to;
  if (const int status = file.read_path(args[at ? 1 : 0], from.path); status != 0) return status;
  if (from.path.empty() && (flags & AT_EMPTY_PATH) == 0) return -ENOENT;
  if (const int status = file.open_start(at ? args[0] : kFromCwd, from.path, from.start); status != 0) return status;
  // A wrong second argument counts only after the first was found.
  int second = file.read_path(args[at ? 3 : 1], to.path);
  if (second == 0) second = to.path.empty() ? -ENOENT : file.open_start(at ? args[2] : kFromCwd, to.path, to.start);
  if (second == 0) return link_names(file, from, to, flags);
  if (const int status = file.begin(); status != 0) return status;
  Source source;
  const int first = find_source(file, from, flags, source);
  return first != 0 ? first : second;
}

}  // namespace belljar::broker
