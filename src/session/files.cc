#include "session/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "base/format.h"
#include "base/remove_tree.h"
#include "policy/paths.h"
#include "session/act_as.h"

namespace belljar::session {
namespace {

constexpr std::uint64_t kLargestRead = 256ULL << 20;
constexpr std::size_t kMostEntries = 1'000'000;
constexpr unsigned kPermissionBits = 0777;

int open_at(int directory, const std::string& relative, int flags, unsigned mode, std::uint64_t resolve) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.mode = mode;
  how.resolve = resolve;
  // EAGAIN: something was renamed on the way, and the kernel will not say whether it led out (openat2(2)).
  for (int turn = 0; turn < 64; ++turn) {
    const long fd = ::syscall(SYS_openat2, directory, relative.c_str(), &how, sizeof how);
    if (fd >= 0 || (errno != EAGAIN && errno != EINTR)) return static_cast<int>(fd);
  }
  return -1;
}

std::string canonical_of(int fd) {
  char buffer[PATH_MAX];
  const ssize_t size = ::readlink(format("/proc/self/fd/{}", fd).c_str(), buffer, sizeof buffer);
  return size > 0 ? std::string(buffer, static_cast<std::size_t>(size)) : std::string();
}

Result<void> check_mode(std::optional<unsigned> mode) {
  if (mode && (*mode & ~kPermissionBits) != 0)
    return Error(Code::kInvalidArgument, format("cannot set mode {:o}", *mode))
        .reason("setuid, setgid and sticky bits are never set from here")
        .next("give permission bits between 0000 and 0777");
  return {};
}

Result<void> write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return file_error(errno, "write", path, "write");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

// A directory with the mode asked for. By a descriptor: chmod(2) by name would follow a link that was put there meanwhile.
int make_directory(int parent, const std::string& name, std::optional<unsigned> mode) {
  if (::mkdirat(parent, name.c_str(), mode.value_or(0777)) < 0) return errno;
  if (!mode) return 0;
  const UniqueFd made(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return made.valid() && ::fchmod(made.get(), *mode) == 0 ? 0 : errno;
}

Result<void> need_regular(int fd, const std::string& path, const char* doing) {
  struct stat status{};
  if (::fstat(fd, &status) < 0) return file_error(errno, doing, path, "fstat");
  if (S_ISREG(status.st_mode)) return {};
  if (S_ISDIR(status.st_mode)) return file_error(EISDIR, doing, path, "open");
  return Error(Code::kFailedPrecondition, format("cannot {} {}", doing, quoted(path)))
      .reason("it is a FIFO, a device or a socket, not a file")
      .next("use it from a command inside");
}

}  // namespace

Error file_error(int errnum, std::string_view doing, const std::string& path, std::string call) {
  Code code = Code::kUnavailable;
  std::string what = format("cannot {} {}", doing, quoted(path));
  switch (errnum) {
    case EXDEV:
      return Error(Code::kInvalidArgument, format("path escapes workspace: {}", escaped(path)))
          .next("name a path inside of the workspace; links that lead out or are absolute are not followed");
    case ELOOP:
    case EINVAL:
    case ENAMETOOLONG:
      code = Code::kInvalidArgument;
      break;
    case ENOENT:
      code = Code::kNotFound;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      code = Code::kPermissionDenied;
      break;
    case EEXIST:
      code = Code::kAlreadyExists;
      break;
    case EISDIR:
    case ENOTDIR:
    case ENOTEMPTY:
    case ENXIO:  // a FIFO nobody reads, a socket
      code = Code::kFailedPrecondition;
      break;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      code = Code::kResourceExhausted;
      break;
    case ENOSYS:
      return Error(Code::kUnimplemented, std::move(what)).sys(errnum, std::move(call)).next("openat2(2) needs Linux 5.6");
    default:
      break;
  }
  return Error(code, std::move(what)).sys(errnum, std::move(call));
}

std::optional<FileInfo> describe(int directory, const std::string& name) {
  struct stat status{};
  if (::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | (name.empty() ? AT_EMPTY_PATH : 0)) < 0)
    return {};
  FileInfo info;
  info.path = name;
  info.size = static_cast<std::uint64_t>(status.st_size);
  info.mode = status.st_mode & 07777;
  info.modified = std::chrono::system_clock::time_point(std::chrono::duration_cast<std::chrono::system_clock::duration>(
      std::chrono::seconds(status.st_mtim.tv_sec) + std::chrono::nanoseconds(status.st_mtim.tv_nsec)));
  if (S_ISDIR(status.st_mode)) info.type = FileType::kDirectory;
  else if (S_ISLNK(status.st_mode)) info.type = FileType::kSymlink;
  else if (!S_ISREG(status.st_mode)) info.type = FileType::kOther;
  if (info.type != FileType::kSymlink) return info;
  char target[PATH_MAX];
  const ssize_t size = ::readlinkat(directory, name.c_str(), target, sizeof target);
  if (size > 0) info.target.assign(target, static_cast<std::size_t>(size));
  return info;
}

Result<Files> Files::open(FilesOptions options) {
  const ActAs identity(options.uid, options.gid);
  const std::string inside = options.workspace == "/" ? "." : options.workspace.substr(1);
  const int fd = open_at(options.root.get(), inside, O_PATH | O_DIRECTORY, 0, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);
  if (fd < 0) return file_error(errno, "open the workspace", options.workspace, "openat2");
  return Files(std::move(options), UniqueFd(fd));
}

// The part below the workspace; "." for the workspace itself. What an absolute path with ".." means is decided as text, before the
// kernel decides what the rest leads to: either way nothing is opened but beneath the workspace.
Result<std::string> Files::relative(const std::string& path) const {
  if (path.find('\0') != std::string::npos)
    return Error(Code::kInvalidArgument, format("cannot use path {}", quoted(path))).reason("it holds a NUL byte");
  if (path.size() > policy::kMaxPath) return file_error(ENAMETOOLONG, "use path", path.substr(0, 80) + "...", "open");
  if (path.empty()) return std::string(".");
  if (path[0] != '/') return path;
  const std::string& top = options_.workspace;
  std::string full = policy::is_within(path, top) ? path : policy::normal(path);
  if (!policy::is_within(full, top)) return file_error(EXDEV, "open", path, "");
  std::string rest = full.substr(top == "/" ? 0 : top.size());
  rest.erase(0, rest.find_first_not_of('/'));
  return rest.empty() ? "." : rest;
}

Result<UniqueFd> Files::open_beneath(const std::string& path, const std::string& relative, int flags, unsigned mode) const {
  const int fd = open_at(workspace_.get(), relative, flags, mode, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
  if (fd < 0) return file_error(errno, "open", path, "openat2");
  return UniqueFd(fd);
}

Result<void> Files::may(const std::string& path, const std::string& canonical, Access wanted) const {
  if (!options_.rules) return {};
  const FsEntry* rule = find_rule(*options_.rules, canonical);
  const Access given = rule == nullptr ? Access::kNone : rule->access;
  if (given == Access::kWrite || (given == Access::kRead && wanted == Access::kRead)) return {};
  return Error(Code::kPermissionDenied, format("cannot {} {}", wanted == Access::kRead ? "read" : "write", quoted(path)))
      .reason(rule == nullptr
                  ? "no rule of the policy allows it"
                  : format("the policy gives {} to {} ({})", to_string(rule->access), quoted(rule->path), to_string(rule->origin)))
      .next("widen the policy, or use another path");
}

// Never blocks: O_NONBLOCK, and then only a regular file passes.
Result<UniqueFd> Files::open_file(const std::string& path, int flags) const {
  const std::string rest = BELLJAR_TRY(relative(path));
  UniqueFd fd = BELLJAR_TRY(open_beneath(path, rest, flags | O_NONBLOCK | O_NOCTTY));
  BELLJAR_CHECK(may(path, canonical_of(fd.get()), Access::kRead));
  return fd;
}

Result<std::string> Files::read(const std::string& path, const ReadOptions& options) const {
  const ActAs identity(options_.uid, options_.gid);
  const UniqueFd fd = BELLJAR_TRY(open_file(path, O_RDONLY));
  BELLJAR_CHECK(need_regular(fd.get(), path, "read"));
  struct stat status{};
  ::fstat(fd.get(), &status);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const std::uint64_t left = size > options.offset ? size - options.offset : 0;
  if (!options.limit && left > kLargestRead)
    return Error(Code::kOutOfRange, format("cannot read {}", quoted(path)))
        .reason(format("it has {} bytes, and at most {} are read at once", size, kLargestRead))
        .next("read it in parts, with an offset and a limit");
  std::string bytes;
  const std::uint64_t most = std::min(options.limit.value_or(kLargestRead), kLargestRead);
  std::uint64_t at = options.offset;
  while (bytes.size() < most) {
    const std::size_t had = bytes.size();
    // One byte more than it should have: the read that finds the end is the one that gets the rest.
    const std::uint64_t guess = had == 0 ? std::max<std::uint64_t>(left + 1, 4096) : std::max<std::uint64_t>(had, 65536);
    const auto want = static_cast<std::size_t>(std::min(guess, most - had));
    bytes.resize(had + want);
    const ssize_t got = ::pread(fd.get(), bytes.data() + had, want, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) {
      bytes.resize(had);
      continue;
    }
    if (got < 0) return file_error(errno, "read", path, "read");
    bytes.resize(had + static_cast<std::size_t>(got));
    at += static_cast<std::uint64_t>(got);
    if (static_cast<std::size_t>(got) < want) break;
  }
  return bytes;
}

// The directory that holds the last name of `path`. "." and ".." as last names are no names.
Result<Files::Place> Files::find_place(const std::string& path) const {
  std::string rest = BELLJAR_TRY(relative(path));
  while (rest.size() > 1 && rest.back() == '/') rest.pop_back();
  const std::size_t slash = rest.rfind('/');
  Place place;
  place.name = slash == std::string::npos ? rest : rest.substr(slash + 1);
  const std::string up = slash == std::string::npos ? "." : rest.substr(0, slash);
  if (place.name == "..") {  // "a/.." may be the workspace or outside of it: let the kernel say which
    BELLJAR_TRY(open_beneath(path, rest, O_PATH));
    place.name = ".";
  }
  if (place.name == ".")
    return Error(Code::kInvalidArgument, format("cannot use {} here", quoted(path)))
        .reason("it is a directory on the way, or the workspace itself")
        .next("name what is in it");
  place.parent = BELLJAR_TRY(open_beneath(path, up, O_PATH | O_DIRECTORY));
  place.full = canonical_of(place.parent.get()) + "/" + place.name;
  return place;
}

Result<void> Files::make_parents(const std::string& path, const std::string& rest, std::optional<unsigned> mode) const {
  for (std::size_t end = 0; end != std::string::npos;) {
    end = rest.find('/', end + 1);
    const std::string prefix = rest.substr(0, end);
    if (const int fd = open_at(workspace_.get(), prefix, O_PATH | O_DIRECTORY, 0, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
        fd >= 0) {
      ::close(fd);
      continue;
    }
    if (errno != ENOENT) return file_error(errno, "make directory", path, "openat2");
    const Place place = BELLJAR_TRY(find_place(prefix));
    BELLJAR_CHECK(may(path, place.full, Access::kWrite));
    const int failed = make_directory(place.parent.get(), place.name, mode);
    if (failed != 0 && failed != EEXIST) return file_error(failed, "make directory", path, "mkdir");
  }
  return {};
}

Result<void> Files::write(const std::string& path, std::string_view bytes, const WriteOptions& options) const {
  BELLJAR_CHECK(check_mode(options.mode));
  const ActAs identity(options_.uid, options_.gid);
  const std::string rest = BELLJAR_TRY(relative(path));
  if (rest.ends_with('/')) return file_error(EISDIR, "write", path, "open");
  if (const std::size_t slash = rest.rfind('/'); slash != std::string::npos && options.parents == Parents::kCreate)
    BELLJAR_CHECK(make_parents(path, rest.substr(0, slash), {}));
  return options.how == WriteMode::kAtomic ? replace(path, bytes, options) : write_here(path, rest, bytes, options);
}

Result<void> Files::write_here(const std::string& path, const std::string& rest, std::string_view bytes,
                               const WriteOptions& options) const {
  // Judged before anything is made. An existing file is judged by where it is, through whatever link led there.
  const int existing = open_at(workspace_.get(), rest, O_PATH, 0, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
  if (existing >= 0) {
    const UniqueFd there(existing);
    BELLJAR_CHECK(may(path, canonical_of(there.get()), Access::kWrite));
    BELLJAR_CHECK(need_regular(there.get(), path, "write"));
  } else if (errno == ENOENT) {
    const Place place = BELLJAR_TRY(find_place(path));
    BELLJAR_CHECK(may(path, place.full, Access::kWrite));
  } else {
    return file_error(errno, "write", path, "openat2");
  }
  const int append = options.how == WriteMode::kAppend ? O_APPEND : 0;
  const UniqueFd fd =
      BELLJAR_TRY(open_beneath(path, rest, O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | append, options.mode.value_or(0666)));
  BELLJAR_CHECK(may(path, canonical_of(fd.get()), Access::kWrite));  // it may be another one by now
  BELLJAR_CHECK(need_regular(fd.get(), path, "write"));
  if (append == 0 && ::ftruncate(fd.get(), 0) < 0) return file_error(errno, "empty", path, "ftruncate");
  if (options.mode && ::fchmod(fd.get(), *options.mode) < 0) return file_error(errno, "set the mode of", path, "fchmod");
  return write_all(fd.get(), bytes, path);
}

Result<void> Files::replace(const std::string& path, std::string_view bytes, const WriteOptions& options) const {
  static std::atomic<unsigned> serial{0};
  const Place place = BELLJAR_TRY(find_place(path));
  BELLJAR_CHECK(may(path, place.full, Access::kWrite));
  const auto before = describe(place.parent.get(), place.name);
  if (before && before->type != FileType::kFile && before->type != FileType::kSymlink)
    return file_error(before->type == FileType::kDirectory ? EISDIR : ENXIO, "replace", path, "rename");
  const std::string temporary = format(".belljar-{}-{}.tmp", ::getpid(), serial++);
  const bool keep = before && before->type == FileType::kFile;
  const UniqueFd fd(::openat(place.parent.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                             options.mode.value_or(0666)));
  if (!fd.valid()) return file_error(errno, "write", path, "open");
  auto done = write_all(fd.get(), bytes, path);
  const std::optional<unsigned> mode = options.mode ? options.mode
                                       : keep       ? std::optional(before->mode & kPermissionBits)
                                                    : std::nullopt;
  if (done && mode && ::fchmod(fd.get(), *mode) < 0) done = file_error(errno, "set the mode of", path, "fchmod");
  // Else a crash of the machine could leave the new name with none of the bytes.
  if (done && ::fdatasync(fd.get()) < 0) done = file_error(errno, "write", path, "fdatasync");
  if (done && ::renameat(place.parent.get(), temporary.c_str(), place.parent.get(), place.name.c_str()) < 0)
    done = file_error(errno, "replace", path, "rename");
  if (!done) ::unlinkat(place.parent.get(), temporary.c_str(), 0);
  return done;
}

Result<std::vector<FileInfo>> Files::list(const std::string& path) const {
  const ActAs identity(options_.uid, options_.gid);
  UniqueFd fd = BELLJAR_TRY(open_file(path, O_RDONLY | O_DIRECTORY));
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(fd.get()), ::closedir);
  if (stream == nullptr) return file_error(errno, "list", path, "fdopendir");
  const int directory = fd.release();
  std::vector<FileInfo> entries;
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (entries.size() == kMostEntries)
      return Error(Code::kResourceExhausted, format("cannot list {}", quoted(path)))
          .reason(format("it has more than {} entries", kMostEntries));
    if (auto info = describe(directory, name)) entries.push_back(*std::move(info));
  }
  std::ranges::sort(entries, {}, &FileInfo::path);
  return entries;
}

Result<FileInfo> Files::stat(const std::string& path) const {
  const ActAs identity(options_.uid, options_.gid);
  const std::string rest = BELLJAR_TRY(relative(path));
  const UniqueFd fd = BELLJAR_TRY(open_beneath(path, rest, O_PATH | O_NOFOLLOW));
  auto info = describe(fd.get(), "");
  if (!info) return file_error(errno, "look at", path, "fstatat");
  info->path = path;
  return *std::move(info);
}

Result<void> Files::make_dir(const std::string& path, const MakeDirOptions& options) const {
  BELLJAR_CHECK(check_mode(options.mode));
  const ActAs identity(options_.uid, options_.gid);
  if (options.parents == Parents::kCreate) {
    std::string rest = BELLJAR_TRY(relative(path));
    while (rest.size() > 1 && rest.back() == '/') rest.pop_back();
    return make_parents(path, rest, options.mode);
  }
  const Place place = BELLJAR_TRY(find_place(path));
  BELLJAR_CHECK(may(path, place.full, Access::kWrite));
  const int failed = make_directory(place.parent.get(), place.name, options.mode);
  if (failed != 0) return file_error(failed, "make directory", path, "mkdir");
  return {};
}

Result<void> Files::rename(const std::string& from, const std::string& to) const {
  const ActAs identity(options_.uid, options_.gid);
  const Place source = BELLJAR_TRY(find_place(from));
  const Place target = BELLJAR_TRY(find_place(to));
  BELLJAR_CHECK(may(from, source.full, Access::kWrite));
  BELLJAR_CHECK(may(to, target.full, Access::kWrite));
  if (::renameat(source.parent.get(), source.name.c_str(), target.parent.get(), target.name.c_str()) == 0) return {};
  // Here EXDEV is two file systems, not a way out.
  if (errno == EXDEV)
    return Error(Code::kFailedPrecondition, format("cannot rename {} to {}", quoted(from), quoted(to)))
        .reason("they are on different file systems")
        .next("copy it with a command inside");
  return file_error(errno, "rename", from, "renameat");
}

Result<void> Files::remove(const std::string& path, const RemoveOptions& options) const {
  const ActAs identity(options_.uid, options_.gid);
  const Place place = BELLJAR_TRY(find_place(path));
  BELLJAR_CHECK(may(path, place.full, Access::kWrite));
  const auto info = describe(place.parent.get(), place.name);
  if (!info) return file_error(errno, "remove", path, "fstatat");
  if (info->type == FileType::kDirectory && options.depth == Depth::kTree) return remove_tree_at(place.parent.get(), place.name);
  const int flags = info->type == FileType::kDirectory ? AT_REMOVEDIR : 0;
  if (::unlinkat(place.parent.get(), place.name.c_str(), flags) < 0) return file_error(errno, "remove", path, "unlinkat");
  return {};
}

Result<std::string> Files::find_cwd(const std::string& cwd) const {
  if (cwd.empty()) return options_.workspace;
  const ActAs identity(options_.uid, options_.gid);
  const auto rest = relative(cwd);
  const int fd = !rest ? -1 : open_at(workspace_.get(), *rest, O_PATH | O_DIRECTORY, 0, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
  const int errnum = errno;
  if ((!rest && rest.error().what().starts_with("path escapes")) || (rest && fd < 0 && errnum == EXDEV))
    return Error(Code::kInvalidArgument, format("workdir escapes workspace: {}", escaped(cwd)))
        .next("name a directory inside of the workspace");
  if (!rest) return rest.error();
  if (fd < 0) return file_error(errnum, "use as working directory", cwd, "openat2");
  const UniqueFd directory(fd);
  return canonical_of(fd);
}

Result<UniqueFd> Files::open_terminal() const {
  const ActAs identity(options_.uid, options_.gid);
  int fd = open_at(options_.root.get(), "dev/pts/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK, 0, RESOLVE_IN_ROOT);
  // Where the host's devpts is in view its own ptmx is closed, and the other place open.
  if (fd < 0) fd = open_at(options_.root.get(), "dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK, 0, RESOLVE_IN_ROOT);
  if (fd < 0) return Error(Code::kFailedPrecondition, "cannot open a terminal in the sandbox").sys(errno, "openat2");
  UniqueFd master(fd);
  int unlock = 0;
  if (::ioctl(fd, TIOCSPTLCK, &unlock) < 0)
    return Error(Code::kFailedPrecondition, "cannot open a terminal in the sandbox").sys(errno, "TIOCSPTLCK");
  return master;
}

}  // namespace belljar::session
