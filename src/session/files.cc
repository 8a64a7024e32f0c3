// How a path of a caller becomes a descriptor without a way out of the sandbox.
//
// openat2(2) with RESOLVE_BENEATH resolves the path below the workspace and fails with EXDEV where a link, or
// "..", leads out. A check of the text before open(2) would not do: a command inside can replace a directory by
// a link between the two.
//
// The policy may open further places by name (roots), and a link from one into another is legitimate, but
// RESOLVE_BENEATH refuses it, too. Only then resolve_as_text() walks the links one by one, O_PATH, and comes to
// a path without links. That text decides nothing by itself: it is opened again below its own root with
// RESOLVE_NO_SYMLINKS. If somebody put a link on the way meanwhile, the open fails.
//
// The rules are asked about the path that the kernel names for the open descriptor (/proc/self/fd, proc(5)),
// not about the caller's text. A path that the kernel cannot name within PATH_MAX cannot be judged and is
// refused.
//
// Nothing here waits. O_NONBLOCK keeps an open of a FIFO from waiting for its other end, O_NOCTTY keeps a
// terminal from becoming ours, and only a regular file passes afterwards.
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
#include <deque>
#include <memory>
#include <utility>

#include "base/format.h"
#include "base/remove_tree.h"
#include "policy/paths.h"
#include "session/act_as.h"
#include "session/in_time.h"

namespace belljar::session {
namespace {

constexpr std::uint64_t kLargestRead = 256ULL << 20;
constexpr std::uint64_t kOneRead = 8ULL << 20;  // between two looks whether the call is over
constexpr std::size_t kMostEntries = 1'000'000;
constexpr int kMostLinks = 40;  // as the kernel, path_resolution(7)

}  // namespace

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

Result<std::uint64_t> need_regular(int fd, const std::string& path, const char* doing) {
  struct stat status{};
  if (::fstat(fd, &status) < 0) return file_error(errno, doing, path, "fstat");
  if (S_ISREG(status.st_mode)) return static_cast<std::uint64_t>(status.st_size);
  if (S_ISDIR(status.st_mode)) return file_error(EISDIR, doing, path, "open");
  return Error(Code::kFailedPrecondition, format("cannot {} {}", doing, quoted(path)))
      .reason("it is a FIFO, a device or a socket, not a file")
      .next("use it from a command inside");
}

Error file_error(int errnum, std::string_view doing, const std::string& path, std::string call) {
  Code code = Code::kUnavailable;
  std::string what = format("cannot {} {}", doing, quoted(path));
  switch (errnum) {
    case EXDEV:
      return Error(Code::kInvalidArgument, format("path escapes workspace: {}", escaped(path)))
          .next("name a path inside of the workspace, or one that the policy opens by name; links that lead out are not followed");
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
    case EBUSY:  // something of the sandbox's is mounted there
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
  const auto moment = [](const timespec& time) {
    return std::chrono::system_clock::time_point(std::chrono::duration_cast<std::chrono::system_clock::duration>(
        std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec)));
  };
  info.modified = moment(status.st_mtim);
  info.changed = moment(status.st_ctim);
  if (S_ISDIR(status.st_mode)) info.type = FileType::kDirectory;
  else if (S_ISLNK(status.st_mode)) info.type = FileType::kSymlink;
  else if (!S_ISREG(status.st_mode)) info.type = FileType::kOther;
  if (info.type != FileType::kSymlink) return info;
  char target[PATH_MAX];
  const ssize_t size = ::readlinkat(directory, name.c_str(), target, sizeof target);
  if (size > 0) info.target.assign(target, static_cast<std::size_t>(size));
  return info;
}

// Calls are judged by where they come out; a rule may name a link to it.
void Files::add_canonical(const std::vector<Root>& roots, std::shared_ptr<const Filesystem>& rules) {
  if (rules == nullptr || std::ranges::all_of(roots, [](const Root& root) { return root.named == root.canonical; })) return;
  Filesystem more = *rules;
  for (const Root& root : roots) {
    const FsEntry* const rule = find_rule(*rules, root.named);
    if (root.named == root.canonical || rule == nullptr || rule->path != root.named) continue;
    FsEntry same = *rule;
    same.path = root.canonical;
    more.entries.push_back(std::move(same));
  }
  rules = std::make_shared<const Filesystem>(std::move(more));
}

Result<Files> Files::open(FilesOptions options) {
  const ActAs identity(options.uid, options.gid);
  const std::string inside = options.workspace == "/" ? "." : options.workspace.substr(1);
  const int fd = open_at(options.root.get(), inside, O_PATH | O_DIRECTORY, 0, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);
  if (fd < 0) return file_error(errno, "open the workspace", options.workspace, "openat2");
  UniqueFd workspace(fd);
  std::vector<Root> roots;
  for (const std::string& named : options.roots) {
    const UniqueFd there(open_at(options.root.get(), named.substr(1), O_PATH, 0, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS));
    std::string canonical = there.valid() ? canonical_of(there.get()) : named;
    if (!canonical.starts_with('/') || canonical == "/" || policy::is_within(canonical, options.workspace)) continue;
    struct stat status{};
    const bool directory = there.valid() && ::fstat(there.get(), &status) == 0 && S_ISDIR(status.st_mode);
    roots.push_back({named, std::move(canonical), directory});
  }
  add_canonical(roots, options.rules.plain);
  return Files(std::move(options), std::move(workspace), std::move(roots));
}

std::vector<std::string> roots_of(const Filesystem& filesystem) {
  std::vector<std::string> roots;
  for (const FsEntry& entry : filesystem.entries) {
    const bool opens = !entry.glob && entry.access != Access::kNone && entry.path != "/";
    if (opens && entry.kind != RuleKind::kNarrowing && entry.origin.layer != "built-in") roots.push_back(entry.path);
  }
  for (const Volume& volume : filesystem.volumes) roots.push_back(volume.target);
  if (filesystem.temp_dir) roots.push_back(*filesystem.temp_dir);
  return roots;
}

const Files::Root* Files::root_of(std::string_view path) const {
  const auto holds = [&](const Root& root) { return policy::is_within(path, root.canonical); };
  const auto found = std::ranges::find_if(roots_, holds);
  return found == roots_.end() ? nullptr : &*found;
}

bool Files::is_inside(std::string_view path) const {
  return policy::is_within(path, options_.workspace) || root_of(path) != nullptr;
}

// The part below the workspace; "." for the workspace itself. What an absolute path with ".." means is decided as text, before the
// kernel decides what the rest leads to: either way nothing is opened but beneath the workspace or a root.
Result<std::string> Files::relative(const std::string& path) const {
  if (path.find('\0') != std::string::npos)
    return Error(Code::kInvalidArgument, format("cannot use path {}", quoted(path))).reason("it holds a NUL byte");
  if (path.size() > policy::kMaxPath) return file_error(ENAMETOOLONG, "use path", path.substr(0, 80) + "...", "open");
  if (path.empty()) return std::string(".");
  if (path[0] != '/') return path;
  for (const std::string* top : {&options_.workspace, &options_.named}) {
    if (top->empty()) continue;
    const std::string full = policy::is_within(path, *top) ? path : policy::normal(path);
    if (!policy::is_within(full, *top)) continue;
    std::string rest = full.substr(*top == "/" ? 0 : top->size());
    rest.erase(0, rest.find_first_not_of('/'));
    return rest.empty() ? "." : rest;
  }
  for (const Root& root : roots_) {
    for (const std::string* name : {&root.canonical, &root.named}) {
      const std::string full = policy::is_within(path, *name) ? path : policy::normal(path);
      if (policy::is_within(full, *name)) return root.canonical + full.substr(name->size());
    }
  }
  return file_error(EXDEV, "open", path, "");
}

// Link by link from "/", as a command would go; O_PATH touches nothing. Only text comes of it: what is opened by it afterwards is
// opened without following a link, so what is changed meanwhile leads nowhere else.
Files::ResolvedPath Files::resolve_as_text(const std::string& path, Last last) const {
  std::deque<std::string> todo;
  const auto prepend = [&todo](std::string_view text) {
    std::vector<std::string> parts;
    for (std::size_t from = 0; from < text.size();) {
      const std::size_t end = std::min(text.find('/', from), text.size());
      parts.emplace_back(text.substr(from, end - from));
      from = end + 1;
    }
    todo.insert(todo.begin(), parts.begin(), parts.end());
  };
  prepend(path);
  ResolvedPath led;
  int links = 0, missing = 0;  // why no directory stands at led.path
  while (!todo.empty()) {
    const std::string part = std::move(todo.front());
    todo.pop_front();
    if (part.empty() || part == ".") continue;
    if (missing != 0 && led.failed == 0 && part == "..") led.failed = missing;
    if (part == "..") {
      led.path.erase(led.path.empty() ? 0 : led.path.rfind('/'));
      continue;
    }
    const std::string next = led.path + "/" + part;
    const UniqueFd fd(open_at(options_.root.get(), next.substr(1), O_PATH | O_NOFOLLOW, 0,
                              RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS));
    const auto info = fd.valid() ? describe(fd.get(), "") : std::nullopt;
    if (!info || info->type != FileType::kSymlink || (todo.empty() && last == Last::kLeave)) {
      missing = !info ? ENOENT : info->type != FileType::kDirectory ? ENOTDIR : 0;
      led.path = next;
      continue;
    }
    if (++links > kMostLinks) return {.path = path, .failed = ELOOP};
    if (info->target.starts_with('/')) led.path.clear();
    prepend(info->target);
  }
  if (led.path.empty()) led.path = "/";
  return led;
}

int Files::open_within(const std::string& relative, int flags, unsigned mode) const {
  constexpr std::uint64_t kBeneath = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  if (!relative.starts_with('/')) {
    const int fd = open_at(workspace_.get(), relative, flags, mode, kBeneath);
    if (fd >= 0 || errno != EXDEV) return fd;
  }
  const ResolvedPath led = resolve_as_text(full_path(relative), (flags & O_NOFOLLOW) != 0 ? Last::kLeave : Last::kFollow);
  if (!is_inside(led.path)) return errno = EXDEV, -1;
  if (led.failed != 0) return errno = led.failed, -1;
  if (relative.ends_with('/')) flags |= O_DIRECTORY;
  const bool below = policy::is_within(led.path, options_.workspace);
  std::string rest = led.path.substr(below && options_.workspace != "/" ? options_.workspace.size() : 0);
  rest.erase(0, rest.find_first_not_of('/'));
  return open_at(below ? workspace_.get() : options_.root.get(), rest.empty() ? "." : rest, flags, mode,
                 kBeneath | RESOLVE_NO_SYMLINKS);
}

Result<UniqueFd> Files::open_beneath(const std::string& path, const std::string& relative, int flags, unsigned mode) const {
  const int fd = open_within(relative, flags, mode);
  if (fd < 0) return file_error(leads_out(errno, relative) ? EXDEV : errno, "open", path, "openat2");
  return UniqueFd(fd);
}

// What is missing on the way ends the kernel's search before a later ".." leads out: "nope/../../x".
bool Files::leads_out(int errnum, const std::string& relative) const {
  if (errnum == EXDEV) return true;
  if (errnum != ENOENT && errnum != ENOTDIR) return false;
  return !is_inside(policy::normal(full_path(relative)));
}

// Never blocks: O_NONBLOCK, and then only a regular file passes.
Result<UniqueFd> Files::open_file(const std::string& path, int flags) const {
  const std::string rest = BELLJAR_TRY(relative(path));
  const Judge::Shared held = judge_.share();
  UniqueFd fd = BELLJAR_TRY(open_beneath(path, rest, flags | O_NONBLOCK | O_NOCTTY));
  struct stat now{};
  const bool is_dir = ::fstat(fd.get(), &now) == 0 && S_ISDIR(now.st_mode);
  const std::string canonical = canonical_of(fd.get());
  if (!canonical.starts_with('/'))
    return file_error(ENAMETOOLONG, "open", path, "readlink");  // what cannot be named cannot be judged
  BELLJAR_CHECK(judge_.may_read(path, canonical, is_dir));
  return fd;
}

Result<std::string> Files::read(const std::string& path, const ReadOptions& options) const {
  BELLJAR_CHECK(check_in_time(options.call, "read", path));
  const ActAs identity(options_.uid, options_.gid);
  const UniqueFd fd = BELLJAR_TRY(open_file(path, O_RDONLY));
  const std::uint64_t size = BELLJAR_TRY(need_regular(fd.get(), path, "read"));
  const std::uint64_t left = size > options.offset ? size - options.offset : 0;
  if (!options.limit && left > kLargestRead)
    return Error(Code::kOutOfRange, format("cannot read {}", quoted(path)))
        .reason(format("it has {} bytes, and at most {} are read at once", size, kLargestRead))
        .next("read it in parts, with an offset and a limit");
  std::string bytes;
  const std::uint64_t most = std::min(options.limit.value_or(kLargestRead), kLargestRead);
  if (left > kOneRead) bytes.reserve(static_cast<std::size_t>(std::min(left + 1, most)));
  std::uint64_t at = options.offset;
  while (bytes.size() < most) {
    const std::size_t had = bytes.size();
    // One byte more than it should have: the read that finds the end is the one that gets the rest.
    const std::uint64_t guess = had == 0 ? std::max<std::uint64_t>(left + 1, 4096) : std::max<std::uint64_t>(had, 65536);
    const auto want = static_cast<std::size_t>(std::min({guess, most - had, kOneRead}));
    if (had > 0) BELLJAR_CHECK(check_in_time(options.call, "read", path));
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

Result<std::vector<FileInfo>> Files::list(const std::string& path, const CallOptions& options) const {
  BELLJAR_CHECK(check_in_time(options, "list", path));
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
    BELLJAR_CHECK(check_in_time(options, "list", path));
  }
  std::ranges::sort(entries, {}, &FileInfo::path);
  return entries;
}

Result<FileInfo> Files::stat(const std::string& path, const CallOptions& options) const {
  BELLJAR_CHECK(check_in_time(options, "look at", path));
  const ActAs identity(options_.uid, options_.gid);
  const std::string rest = BELLJAR_TRY(relative(path));
  const UniqueFd fd = BELLJAR_TRY(open_beneath(path, rest, O_PATH | O_NOFOLLOW));
  auto info = describe(fd.get(), "");
  if (!info) return file_error(errno, "look at", path, "fstatat");
  info->path = path;
  return *std::move(info);
}

Result<std::string> Files::find_cwd(const std::string& cwd) const {
  if (cwd.empty()) return options_.workspace;
  const ActAs identity(options_.uid, options_.gid);
  const auto rest = relative(cwd);
  const int fd = !rest ? -1 : open_within(*rest, O_PATH | O_DIRECTORY);
  const int errnum = errno;
  if ((!rest && rest.error().what().starts_with("path escapes")) || (rest && fd < 0 && leads_out(errnum, *rest)))
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
