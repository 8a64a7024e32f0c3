// File calls that change something: write, make_dir, rename, remove. Each finds a directory and a name, has the act on that name
// judged, and acts on that name under that directory, following no link there.
//
// The directory is held as a descriptor from the question to the act. A full path would be resolved twice, and
// a command could change what it leads to in between. Where the name itself changed in between, the open fails
// (O_NOFOLLOW, no O_CREAT for what was there) and the whole is asked again, a bounded number of times.
//
// A plain write keeps the inode, so that hard links and open descriptors see it. It overwrites first and cuts
// the rest off afterwards (cut_at). An atomic write makes a new file beside the old one, syncs it and renames
// it over the name: a reader sees the old content or the new one. fdatasync(2) comes before rename(2), because
// the rename may reach the disk before the data does.
//
// A control file of git is never written in place. The whole new content, for an append with the old one in
// front, is judged and put there as a fresh file of ours. No descriptor and no hard link that a command kept can
// change it after the judgement (broker/control_files.h).
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/remove_tree.h"
#include "base/write_all.h"
#include "broker/control_files.h"
#include "broker/file_call.h"
#include "session/act_as.h"
#include "session/files.h"
#include "session/in_time.h"

namespace belljar::session {
namespace {

using broker::Act;
using broker::Answer;

constexpr unsigned kPermissionBits = 0777;
constexpr int kMostTargets = 40;             // links in a row, as the kernel, path_resolution(7)
constexpr int kTries = 64;                   // against a command that changes the name faster than we look at it
constexpr std::size_t kOneWrite = 8U << 20;  // between two looks whether the call is over

Result<void> check_mode(std::optional<unsigned> mode) {
  if (mode && (*mode & ~kPermissionBits) != 0)
    return Error(Code::kInvalidArgument, format("cannot set mode {:o}", *mode))
        .reason("setuid, setgid and sticky bits are never set from here")
        .next("give permission bits between 0000 and 0777");
  return {};
}

Result<void> write_whole(int fd, std::string_view bytes, const std::string& path) {
  if (!write_all(fd, bytes)) return file_error(errno, "write", path, "write");
  return {};
}

// What lies behind `end`, the bytes just written, is of before: `size` is what it had. Not emptied first: ext4 takes O_TRUNC with a
// write for a replacement and waits for the disk at close (mount option auto_da_alloc), milliseconds for each file.
Result<void> cut_at(int fd, std::size_t end, std::uint64_t size, const std::string& path) {
  if (size <= end) return {};
  if (::ftruncate(fd, static_cast<off_t>(end)) < 0) return file_error(errno, "cut", path, "ftruncate");
  return {};
}

// A directory with the mode asked for. By a descriptor: chmod(2) by name would follow a link that was put there meanwhile.
int make_directory(int parent, const std::string& name, std::optional<unsigned> mode) {
  if (::mkdirat(parent, name.c_str(), mode.value_or(0777)) < 0) return errno;
  if (!mode) return 0;
  const UniqueFd made(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return made.valid() && ::fchmod(made.get(), *mode) == 0 ? 0 : errno;
}

broker::DirEntry entry_of(const Site& site) {
  broker::DirEntry entry;
  entry.dir = site.parent.get();
  entry.name = site.name;
  return entry;
}

}  // namespace

// The directory that holds the last name of `path`. "." and ".." as last names are no names.
Result<Site> Files::find_site(const std::string& path) const {
  std::string rest = BELLJAR_TRY(relative(path));
  while (rest.size() > 1 && rest.back() == '/') rest.pop_back();
  const std::size_t slash = rest.rfind('/');
  Site site;
  site.name = slash == std::string::npos ? rest : rest.substr(slash + 1);
  const std::string up = slash == std::string::npos ? "." : slash == 0 ? "/" : rest.substr(0, slash);
  const Root* const root = rest.starts_with('/') ? root_of(rest) : nullptr;
  site.whole = root != nullptr && root->canonical == rest;
  if (site.name == "..") {  // "a/.." may be the workspace or outside of it: let the kernel say which
    BELLJAR_TRY(open_beneath(path, rest, O_PATH));
    site.name = ".";
  }
  if (site.name == "." || (site.whole && root->directory))
    return Error(Code::kInvalidArgument, format("cannot use {} here", quoted(path)))
        .reason("it is a directory on the way, or the whole of a place such as the workspace itself")
        .next("name what is in it");
  std::string directory = canonical_;
  if (up == ".") {
    site.parent = Parent::lent(workspace_.get());
  } else {
    // What a single file lies in is on the way to it, and no further.
    site.parent = site.whole ? UniqueFd(open_at(options_.root.get(), up, O_PATH | O_DIRECTORY, 0,
                                                RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS))
                             : BELLJAR_TRY(open_beneath(path, up, O_PATH | O_DIRECTORY));
    if (!site.parent.valid()) return file_error(errno, "open", path, "openat2");
    directory = canonical_of(site.parent.get());
  }
  if (!directory.starts_with('/'))
    return file_error(ENAMETOOLONG, "use", path, "readlink");  // what cannot be named cannot be judged
  site.full = (directory == "/" ? "" : directory) + "/" + site.name;
  return site;
}

Result<Site> Files::find_target(const std::string& path, std::optional<FileInfo>& info) const {
  std::string at = path;
  for (int links = 0; links <= kMostTargets; ++links) {
    Site site = BELLJAR_TRY(find_site(at));
    info = describe(site.parent.get(), site.name);
    if (!info || info->type != FileType::kSymlink) return site;
    const std::string& target = info->target;
    const ResolvedPath led =
        resolve_as_text(target.starts_with('/') ? target : site.full.substr(0, site.full.rfind('/') + 1) + target, Last::kLeave);
    if (!is_inside(led.path)) return file_error(EXDEV, "open", path, "");
    if (led.failed != 0) return file_error(led.failed, "open", path, "openat2");
    at = led.path;
  }
  return file_error(ELOOP, "open", path, "openat2");
}

Result<void> Files::make_parents(const std::string& path, const std::string& rest, std::optional<unsigned> mode) const {
  const Root* const root = rest.starts_with('/') ? root_of(rest) : nullptr;
  for (std::size_t end = root == nullptr ? 0 : root->canonical.size() - 1; end != std::string::npos;) {
    end = rest.find('/', end + 1);
    const std::string prefix = rest.substr(0, end);
    if (const int fd = open_within(prefix, O_PATH | O_DIRECTORY); fd >= 0) {
      ::close(fd);
      continue;
    }
    // On the way from one place into another; were it the end, the next step would say so.
    if (errno == EXDEV && end != std::string::npos && prefix.ends_with("..")) continue;
    if (errno != ENOENT) return file_error(errno, "make directory", path, "openat2");
    const Site site = BELLJAR_TRY(find_site(prefix));
    BELLJAR_TRY(judge_.may_do(Act::kMkdir, path, site, true));
    const int failed = make_directory(site.parent.get(), site.name, mode);
    if (failed == 0) continue;
    // A directory that somebody made meanwhile is fine; a link that leads nowhere is none.
    const int there = failed != EEXIST ? -1 : open_within(prefix, O_PATH | O_DIRECTORY);
    if (there < 0) return file_error(failed, "make directory", path, "mkdir");
    ::close(there);
  }
  return {};
}

Result<void> Files::write(const std::string& path, std::string_view bytes, const WriteOptions& options) const {
  BELLJAR_CHECK(check_in_time(options.call, "write", path));
  BELLJAR_CHECK(check_mode(options.mode));
  const ActAs identity(options_.uid, options_.gid);
  const Judge::MakeLock held = judge_.lock_to_make(path);
  const std::string rest = BELLJAR_TRY(relative(path));
  if (rest.ends_with('/')) return file_error(EISDIR, "write", path, "open");
  const std::size_t slash = rest.rfind('/');
  const Root* const root = rest.starts_with('/') ? root_of(rest) : nullptr;
  const bool whole = root != nullptr && root->canonical == rest;  // what it lies in is none of ours
  if (slash == std::string::npos || options.parents != Parents::kCreate || whole) return write_there(path, bytes, options);
  const std::vector<std::string> missing = missing_parents(rest);
  auto done = make_parents(path, rest.substr(0, slash), {});
  if (done) done = write_there(path, bytes, options);
  // A write that is refused leaves nothing. What has a name in it by now stays.
  for (auto at = missing.rbegin(); !done && at != missing.rend(); ++at) {
    if (const auto site = find_site(*at)) (void)::unlinkat(site->parent.get(), site->name.c_str(), AT_REMOVEDIR);
  }
  return done;
}

// The directories on the way to `rest` that are not there, a parent before what is in it.
std::vector<std::string> Files::missing_parents(const std::string& rest) const {
  std::vector<std::string> missing;
  for (std::size_t end = rest.find('/', 1); end != std::string::npos; end = rest.find('/', end + 1)) {
    const UniqueFd fd(open_within(rest.substr(0, end), O_PATH));
    if (!fd.valid() && errno == ENOENT) missing.push_back(rest.substr(0, end));
  }
  return missing;
}

Result<void> Files::write_there(const std::string& path, std::string_view bytes, const WriteOptions& options) const {
  for (int turn = 0; turn < kTries; ++turn) {
    if (BELLJAR_TRY(write_once(path, bytes, options))) return {};
  }
  return Error(Code::kAborted, format("cannot write {}", quoted(path)))
      .reason("something inside keeps replacing it")
      .next("try again");
}

// False: what stands at the name changed between the look and the act.
Result<bool> Files::write_once(const std::string& path, std::string_view bytes, const WriteOptions& options) const {
  const bool atomic = options.how == WriteMode::kAtomic;
  std::optional<FileInfo> before;
  const Site site = BELLJAR_TRY(atomic ? find_site(path) : find_target(path, before));
  if (atomic) before = describe(site.parent.get(), site.name);
  const bool exists = before.has_value();
  broker::Ruling ruling;
  if (!exists) ruling = BELLJAR_TRY(judge_.may_do(Act::kCreate, path, site, false));
  if (ruling.answer == Answer::kAllow)
    ruling = BELLJAR_TRY(judge_.may_do(atomic ? Act::kRenameTo : Act::kWrite, path, site, false));
  if (exists && before->type == FileType::kDirectory) return file_error(EISDIR, "write", path, "open");
  if (exists && before->type == FileType::kOther)
    return Error(Code::kFailedPrecondition, format("cannot write {}", quoted(path)))
        .reason("it is a FIFO, a device or a socket, not a file")
        .next("use it from a command inside");
  if (ruling.answer == Answer::kJudge) return write_judged(path, site, ruling, bytes, options).map([] { return true; });
  if (atomic) return replace(path, site, bytes, options).map([] { return true; });
  const int append = options.how == WriteMode::kAppend ? O_APPEND : 0;
  const int create = exists ? 0 : O_CREAT;  // were it gone by now, it would have to be judged as new
  const UniqueFd fd(::openat(site.parent.get(), site.name.c_str(),
                             O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | append | create,
                             options.mode.value_or(0666)));
  if (!fd.valid() && (errno == ELOOP || (exists && errno == ENOENT))) return false;
  if (!fd.valid()) return file_error(errno, "write", path, "openat");
  const std::uint64_t size = BELLJAR_TRY(need_regular(fd.get(), path, "write"));
  if (options.mode && ::fchmod(fd.get(), *options.mode) < 0) return file_error(errno, "set the mode of", path, "fchmod");
  const auto written = write_whole(fd.get(), bytes, path);
  if (append == 0) {
    const off_t end = written ? static_cast<off_t>(bytes.size()) : ::lseek(fd.get(), 0, SEEK_CUR);
    BELLJAR_CHECK(cut_at(fd.get(), static_cast<std::size_t>(std::max<off_t>(end, 0)), size, path));
  }
  BELLJAR_CHECK(written);
  return true;
}

// A control file of git: what stands there afterwards is a fresh file of ours with content that was judged (control_files.h).
Result<void> Files::write_judged(const std::string& path, const Site& site, const broker::Ruling& ruling, std::string_view bytes,
                                 const WriteOptions& options) const {
  std::string content(bytes);
  UniqueFd like;
  if (describe(site.parent.get(), site.name)) {
    if (::faccessat(site.parent.get(), site.name.c_str(), W_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) != 0)
      return file_error(errno, "write", path, "faccessat");
    like = UniqueFd(::openat(site.parent.get(), site.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    const auto old = broker::read_control_file(site.parent.get(), site.name, ruling.git);
    if (!old) return file_error(old.error(), "read", path, "open");
    if (options.how == WriteMode::kAppend) content = *old + content;
  }
  BELLJAR_CHECK(judge_.may_hold(path, site, ruling, content));
  const broker::DirEntry entry = entry_of(site);
  if (const int failed = -broker::install_fresh(entry, {.content = content, .like = like.get(), .mode = 0666}); failed != 0)
    return file_error(failed, "write", path, "rename");
  if (!options.mode) return {};
  const UniqueFd fresh(::openat(site.parent.get(), site.name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  BELLJAR_TRY(need_regular(fresh.get(), path, "set the mode of"));
  if (::chmod(broker::own_link(fresh.get()).c_str(), *options.mode) < 0) return file_error(errno, "set the mode of", path, "chmod");
  return {};
}

Result<void> Files::replace(const std::string& path, const Site& site, std::string_view bytes, const WriteOptions& options) const {
  static std::atomic<unsigned> serial{0};
  const int parent = site.parent.get();
  const auto before = describe(parent, site.name);
  BELLJAR_CHECK(Judge::check_not_mounted(path, site));
  const std::string temporary = format(".belljar-{}-{}.tmp", ::getpid(), serial++);
  const bool keep = before && before->type == FileType::kFile;
  const UniqueFd fd(
      ::openat(parent, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, options.mode.value_or(0666)));
  if (!fd.valid()) return file_error(errno, "write", path, "open");
  Result<void> done;
  for (std::size_t at = 0; done && at < bytes.size(); at += kOneWrite) {
    done = write_whole(fd.get(), bytes.substr(at, kOneWrite), path);
    if (done) done = check_in_time(options.call, "write", path);
  }
  const std::optional<unsigned> mode = options.mode ? options.mode
                                       : keep       ? std::optional(before->mode & kPermissionBits)
                                                    : std::nullopt;
  if (done && mode && ::fchmod(fd.get(), *mode) < 0) done = file_error(errno, "set the mode of", path, "fchmod");
  // Else a crash of the machine could leave the new name with none of the bytes.
  if (done && ::fdatasync(fd.get()) < 0) done = file_error(errno, "write", path, "fdatasync");
  if (done && ::renameat(parent, temporary.c_str(), parent, site.name.c_str()) < 0)
    done = file_error(errno, "replace", path, "rename");
  if (!done) ::unlinkat(parent, temporary.c_str(), 0);
  return done;
}

Result<void> Files::make_dir(const std::string& path, const MakeDirOptions& options) const {
  BELLJAR_CHECK(check_in_time(options.call, "make directory", path));
  BELLJAR_CHECK(check_mode(options.mode));
  const ActAs identity(options_.uid, options_.gid);
  const Judge::MakeLock held = judge_.lock_to_make(path);
  if (options.parents == Parents::kCreate) {
    std::string rest = BELLJAR_TRY(relative(path));
    while (rest.size() > 1 && rest.back() == '/') rest.pop_back();
    return make_parents(path, rest, options.mode);
  }
  const Site site = BELLJAR_TRY(find_site(path));
  BELLJAR_TRY(judge_.may_do(Act::kMkdir, path, site, true));
  const int failed = make_directory(site.parent.get(), site.name, options.mode);
  if (failed != 0) return file_error(failed, "make directory", path, "mkdir");
  return {};
}

Result<void> Files::rename(const std::string& from, const std::string& to, const CallOptions& options) const {
  BELLJAR_CHECK(check_in_time(options, "rename", from));
  const ActAs identity(options_.uid, options_.gid);
  const Judge::Owned held = judge_.own();
  const Site source = BELLJAR_TRY(find_site(from));
  const Site target = BELLJAR_TRY(find_site(to));
  const auto info = describe(source.parent.get(), source.name);
  if (!info) return file_error(errno, "rename", from, "fstatat");
  const bool is_dir = info->type == FileType::kDirectory;
  BELLJAR_TRY(judge_.may_do(Act::kRenameFrom, from, source, is_dir));
  broker::Ruling ruling = BELLJAR_TRY(judge_.may_do(Act::kRenameTo, to, target, is_dir));
  if (ruling.answer == Answer::kAllow && info->type == FileType::kSymlink)
    ruling = BELLJAR_TRY(judge_.may_do(Act::kSymlink, to, target, false));
  if (is_dir) BELLJAR_CHECK(judge_.may_move(from, source, target));
  BELLJAR_CHECK(Judge::check_not_mounted(from, source));
  BELLJAR_CHECK(Judge::check_not_mounted(to, target));
  if (ruling.answer == Answer::kJudge) return rename_judged(from, to, source, target, ruling);
  if (::renameat(source.parent.get(), source.name.c_str(), target.parent.get(), target.name.c_str()) == 0) return {};
  // Here EXDEV is two file systems, not a way out.
  if (errno == EXDEV)
    return Error(Code::kFailedPrecondition, format("cannot rename {} to {}", quoted(from), quoted(to)))
        .reason("they are on different file systems")
        .next("copy it with a command inside");
  return file_error(errno, "rename", from, "renameat");
}

// A file that gets a control name: our copy of its content goes there, and the old name goes away.
Result<void> Files::rename_judged(const std::string& from, const std::string& to, const Site& source, const Site& target,
                                  const broker::Ruling& ruling) const {
  const auto content = broker::read_control_file(source.parent.get(), source.name, ruling.git);
  if (!content) return file_error(content.error(), "read", from, "open");
  BELLJAR_CHECK(judge_.may_hold(to, target, ruling, *content));
  const UniqueFd like(::openat(source.parent.get(), source.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  const broker::DirEntry entry = entry_of(target);
  if (const int failed = -broker::install_fresh(entry, {.act = Act::kRenameTo, .content = *content, .like = like.get()});
      failed != 0)
    return file_error(failed, "rename", from, "rename");
  if (::unlinkat(source.parent.get(), source.name.c_str(), 0) < 0) return file_error(errno, "rename", from, "unlinkat");
  return {};
}

Result<void> Files::remove(const std::string& path, const RemoveOptions& options) const {
  BELLJAR_CHECK(check_in_time(options.call, "remove", path));
  const ActAs identity(options_.uid, options_.gid);
  const Judge::Shared held = judge_.share();
  const Site site = BELLJAR_TRY(find_site(path));
  const auto info = describe(site.parent.get(), site.name);
  if (!info) return file_error(errno, "remove", path, "fstatat");
  const bool is_dir = info->type == FileType::kDirectory;
  BELLJAR_TRY(judge_.may_do(is_dir ? Act::kRmdir : Act::kUnlink, path, site, is_dir));
  BELLJAR_CHECK(Judge::check_not_mounted(path, site));
  if (is_dir && options.depth == Depth::kTree) {
    BELLJAR_CHECK(judge_.may_clear(path, site));
    Result<void> over;
    auto done = remove_tree_at(site.parent.get(), site.name, Deeper::kReport, [&] {
      if (over) over = check_in_time(options.call, "remove", path);
      return !over;
    });
    if (!over) return Error(over.error()).reason(over.error().reason() + "; a part of it is gone");
    return done;
  }
  if (::unlinkat(site.parent.get(), site.name.c_str(), is_dir ? AT_REMOVEDIR : 0) < 0)
    return file_error(errno, "remove", path, "unlinkat");
  return {};
}

}  // namespace belljar::session
