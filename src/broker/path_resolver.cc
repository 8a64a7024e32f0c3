// How a path of the caller becomes a directory descriptor and a name.
//
// The fast way (resolve_fast) asks the kernel once, with openat2(2): first with RESOLVE_NO_SYMLINKS, since
// most paths have no links and then their text is known to be true; only on ELOOP with links allowed, but no
// links of /proc. The scope keeps ".." and absolute links inside the caller's root: RESOLVE_IN_ROOT from the
// root, RESOLVE_BENEATH from a working directory or descriptor. BENEATH refuses what leads above the start
// (EXDEV); the slow way then decides, so a legal ".." costs time and not correctness.
//
// The kernel cannot be asked about links of /proc. /proc/self, resolved by us, is our process and not the
// caller's, and /proc/PID/fd/N is granted by ptrace access, of which the broker has more than the caller. So
// both ways refuse them: RESOLVE_NO_MAGICLINKS for fd, cwd, root and exe, which the kernel answers with
// ELOOP. "self" and "thread-self" are ordinary symbolic links to that flag; after a walk with links ENOENT,
// EXDEV and EAGAIN may therefore mean "self was passed", and a result that lies on a /proc is not believed.
//
// The slow way (resolve_slow) walks component by component. Each step is one lookup in a directory that is
// held open, with the caller's permissions; links are put into the text and counted as the kernel does
// (MAXSYMLINKS); links of /proc are translated for the caller's own process alone (proc_link,
// open_magic_link). It is also how a refusal is explained: it notes which directory could not be searched
// (Barred).
//
// In both ways a hidden name answers EACCES, as the mask's directory of mode 000 would: a link to it is
// recognised by its text, or by the place that it led to.
#include "broker/path_resolver.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>

#include "base/ascii.h"
#include "base/format.h"
#include "base/paths.h"
#include "policy/defaults.h"

namespace belljar::broker {
namespace {

constexpr int kMostLinks = 40;                  // MAXSYMLINKS
constexpr ino_t kProcRoot = 1;                  // PROC_ROOT_INO
constexpr std::size_t kMostText = 64UL * 1024;  // of a path with links put in, on the long way

UniqueFd open_at(int dir, const char* path, int flags, std::uint64_t resolve) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags) | O_PATH | O_CLOEXEC;
  how.resolve = resolve;
  for (int tries = 0; tries < 16; ++tries) {
    UniqueFd file(static_cast<int>(::syscall(SYS_openat2, dir, path, &how, sizeof how)));
    if (file.valid() || (errno != EAGAIN && errno != EINTR)) return file;  // EAGAIN: a rename during "..", openat2(2)
  }
  return {};
}

std::string link_text(int dir, const char* name) {
  std::string text(PATH_MAX, '\0');
  const ssize_t size = ::readlinkat(dir, name, text.data(), text.size());
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return text;
}

// "./" at the start, as tar writes it, leads nowhere and follows no link. Empty where the path is nothing else.
std::string_view without_start(std::string_view path) {
  while (path.starts_with("./")) {
    path.remove_prefix(1);
    path.remove_prefix(std::min(path.size(), path.find_first_not_of('/')));
  }
  return path;
}

bool same_file(int a, int b) {
  struct stat one{}, other{};
  return ::fstat(a, &one) == 0 && ::fstat(b, &other) == 0 && one.st_ino == other.st_ino && one.st_dev == other.st_dev;
}

bool is_link(int fd) {
  struct stat now{};
  return ::fstat(fd, &now) == 0 && S_ISLNK(now.st_mode);
}

bool is_directory(int fd) {
  struct stat now{};
  return ::fstat(fd, &now) == 0 && S_ISDIR(now.st_mode);
}

std::string_view take_component(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of('/')));
  const std::string_view component = rest.substr(0, rest.find('/'));
  rest.remove_prefix(component.size());
  return component;
}

bool is_hiding_place(int fd) {
  struct stat now{};
  return ::fstat(fd, &now) == 0 && now.st_mode == S_IFDIR && path_of(fd) == policy::kHiddenPlace;
}

std::string join(std::string dir, std::string_view name) {
  if (!dir.ends_with('/')) dir += '/';
  return dir.append(name);
}

// N of /proc/N and /proc/N/task/M; empty for all else.
std::string process_of(int dir) {
  const std::string path = on_proc(dir) ? path_of(dir) : "";
  std::string_view rest = path;
  if (!rest.starts_with("/proc/")) return {};
  rest.remove_prefix(5);
  const std::string_view process = take_component(rest);
  if (!is_number(process)) return {};
  const bool whole = rest.empty() || (take_component(rest) == "task" && is_number(take_component(rest)) && rest.empty());
  return whole ? std::string(process) : std::string();
}

bool protected_symlinks() {
  static const bool on = [] {
    const UniqueFd file(::open("/proc/sys/fs/protected_symlinks", O_RDONLY | O_CLOEXEC));
    char value = '1';
    return !file.valid() || ::read(file.get(), &value, 1) != 1 || value != '0';
  }();
  return on;
}

}  // namespace

bool is_mask(std::string_view link) { return link.starts_with(policy::kUsedPlace) || link == policy::kHiddenPlace; }

bool is_mask_at(int dir, const std::string& name) { return is_mask(link_text(dir, name.c_str())); }

std::string own_link(int fd) { return format("/proc/self/fd/{}", fd); }

std::string path_of(int fd) { return link_text(AT_FDCWD, own_link(fd).c_str()); }

bool on_proc(int fd) {
  struct statfs now{};
  return ::fstatfs(fd, &now) == 0 && now.f_type == PROC_SUPER_MAGIC;
}

std::string_view DirEntry::bare() const {
  std::string_view text = name;
  while (text.size() > 1 && text.ends_with('/')) text.remove_suffix(1);
  return text;
}

std::string DirEntry::path() {
  if (dir_path.empty()) dir_path = path_of(dir);
  if (dir_path.empty()) return {};
  std::string whole = dir_path;
  if (!whole.ends_with('/')) whole += '/';
  return whole += bare();
}

std::optional<PathResolver::LiteralPath> PathResolver::literal_path(int start, std::string_view path) {
  const bool absolute = path.starts_with('/');
  path = without_start(path);
  if (!shared_ || path.empty() || path.size() >= PATH_MAX / 2) return std::nullopt;
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  if (path == "/" || !is_literal(path)) return std::nullopt;
  const std::size_t slash = path.rfind('/');
  const std::string_view above = slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
  LiteralPath found{.base = absolute ? root_ : start,
                    .scope = absolute ? std::uint64_t{RESOLVE_IN_ROOT} : std::uint64_t{RESOLVE_BENEATH},
                    .dir_path = {},
                    .name = slash == std::string_view::npos ? path : path.substr(slash + 1)};
  if (!absolute) {
    found.dir_path = shared_->starts.of(start);
    if (found.dir_path.empty()) return std::nullopt;
    if (!above.empty() && found.dir_path != "/") found.dir_path += '/';
  }
  found.dir_path += above;
  if (found.dir_path.empty()) found.dir_path = "/";
  // Of the whole path: the name itself may be a mount point.
  std::string whole = found.dir_path;
  if (whole != "/") whole += '/';
  whole += found.name;
  if (whole.size() >= PATH_MAX) return std::nullopt;  // what the kernel would not name is refused (FileCall::unnamed)
  const MountTable::Facts facts = shared_->mounts.at(caller_, whole);
  if (!facts.known || facts.proc) return std::nullopt;
  found.writable = facts.writable;
  return found;
}

bool PathResolver::scoped() const { return (extra_ & (RESOLVE_BENEATH | RESOLVE_IN_ROOT)) != 0; }

// The kernel goes the way to the link once more, so ".." in its text means what it does there.
OrErrno<std::string> PathResolver::scoped_target(const DirEntry& entry, std::string_view path) {
  permissions_.narrow();
  if (++links_ > kMostLinks || on_proc(entry.dir)) return errno_is(ELOOP);
  const UniqueFd link = open_at(entry.dir, std::string(entry.bare()).c_str(), O_NOFOLLOW, 0);
  if (!link.valid()) return errno_is(errno);
  if (!may_follow(entry.dir, link.get())) return errno_is(EACCES);
  std::string text = link_text(link.get(), "");
  if (text.empty()) return errno_is(ENOENT);
  if (text.starts_with('/')) return text;
  while (path.ends_with('/')) path.remove_suffix(1);
  text.insert(0, path.substr(0, path.rfind('/') + 1));
  if (text.size() >= PATH_MAX) return errno_is(ENAMETOOLONG);
  return text;
}

// One call, links of /proc left out. `lexical`: no link was followed, so the text of the path is true.
OrErrno<UniqueFd> PathResolver::resolve_fast(int start, std::string_view path, int flags, bool& lexical) {
  const bool from_root = path.starts_with('/') && !scoped();
  const int base = from_root ? root_ : start;
  const std::uint64_t scope = extra_ | (scoped()    ? 0U
                                        : from_root ? std::uint64_t{RESOLVE_IN_ROOT}
                                                    : std::uint64_t{RESOLVE_BENEATH});
  // As a directory on the way, not as the end of a path: a last link would be held to fs.protected_symlinks.
  std::string text(path);
  if ((flags & O_DIRECTORY) != 0 && text.size() + 2 < PATH_MAX) text += "/.";
  lexical = true;
  UniqueFd file = open_at(base, text.c_str(), flags, scope | RESOLVE_NO_SYMLINKS);
  if (file.valid()) return file;
  lexical = false;
  if (errno != ELOOP || (extra_ & RESOLVE_NO_SYMLINKS) != 0) return errno_is(errno);
  permissions_.narrow();
  file = open_at(base, text.c_str(), flags, scope | RESOLVE_NO_MAGICLINKS);
  // Only here may /proc/self have been passed, which is ours or nobody's; and ENOENT may mean just that.
  const bool unsure = errno == ENOENT || errno == EXDEV || errno == EAGAIN;
  if (!file.valid()) return errno_is(unsure && !scoped() ? ELOOP : errno);
  if (on_proc(file.get())) return errno_is(ELOOP);
  // Who may look at it has no more than that to do there.
  if (is_hiding_place(file.get())) return errno_is(EACCES);
  return file;
}

OrErrno<DirEntry> PathResolver::parent(int start, std::string_view path) {
  if (path.empty()) return errno_is(ENOENT);
  DirEntry entry;
  const bool inside = scoped();
  const std::optional<LiteralPath> known = inside ? std::nullopt : literal_path(start, path);
  if (known) path = without_start(path);
  else permissions_.narrow();
  std::string_view body = path;
  while (body.ends_with('/')) body.remove_suffix(1);
  if (inside && (extra_ & RESOLVE_BENEATH) != 0 && path.starts_with('/')) return errno_is(EXDEV);
  const int root = inside ? start : root_;
  const auto take_root = [&] {
    entry.dir = root;
    if (!inside) entry.dir_path = "/";
  };
  if (body.empty()) {
    take_root();
    entry.name = ".";
    entry.is_root = true;
    return entry;
  }
  const std::size_t slash = body.rfind('/');
  entry.name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  const std::string_view dir = slash == std::string_view::npos ? "" : body.substr(0, std::max<std::size_t>(slash, 1));
  if (dir.empty()) {
    entry.dir = start;
    if (known) entry.dir_path = known->dir_path;
  } else if (dir.find_first_not_of('/') == std::string_view::npos) {
    take_root();
  } else {
    bool lexical = false;
    auto found = resolve_fast(start, dir, O_DIRECTORY, lexical);
    if (!found && !inside && (found.error() == ELOOP || found.error() == EXDEV)) found = resolve_slow(start, dir, End::kWay);
    if (!found) return errno_is(found.error());
    entry.held = *std::move(found);
    entry.dir = entry.held.get();
    if (lexical && known) entry.dir_path = known->dir_path;
    else if (lexical && !inside && dir.starts_with('/') && is_literal(dir)) entry.dir_path = dir;
    if (!lexical && !is_directory(entry.dir)) return errno_is(ENOTDIR);
  }
  return entry;
}

OrErrno<UniqueFd> PathResolver::object(int start, std::string_view path, Last last) {
  if (path.empty()) return errno_is(ENOENT);
  if (scoped() || !literal_path(start, path)) permissions_.narrow();
  bool lexical = false;
  auto found = resolve_fast(start, path, last == Last::kStay ? O_NOFOLLOW : 0, lexical);
  if (!found && !scoped() && (found.error() == ELOOP || found.error() == EXDEV))
    found = resolve_slow(start, path, last == Last::kStay ? End::kStay : End::kFollow);
  return found;
}

// By component. Every step is one lookup in a directory that is held, with the caller's permissions.
OrErrno<UniqueFd> PathResolver::resolve_slow(int start, std::string_view path, End end) {
  permissions_.narrow();
  std::string text(path);
  std::string_view rest = text;
  UniqueFd here(::fcntl(rest.starts_with('/') ? root_ : start, F_DUPFD_CLOEXEC, 0));
  if (!here.valid()) return errno_is(errno);
  for (std::string_view component = take_component(rest); !component.empty(); component = take_component(rest)) {
    if (component == "." && !rest.empty()) continue;
    if (component == ".." && same_file(here.get(), root_)) continue;
    const std::string name(component);
    UniqueFd next = open_at(here.get(), name.c_str(), O_NOFOLLOW, extra_ & RESOLVE_NO_XDEV);
    if (!next.valid()) {
      const int error = errno;
      if (error == EACCES) barred_ = {path_of(here.get()), name + std::string(rest)};
      return errno_is(error);
    }
    if (!is_link(next.get()) || (rest.empty() && end == End::kStay)) {
      here = std::move(next);
      if (!rest.empty() && !is_directory(here.get())) return errno_is(ENOTDIR);
      continue;
    }
    if (++links_ > kMostLinks || (extra_ & RESOLVE_NO_SYMLINKS) != 0) return errno_is(ELOOP);
    if (rest.empty() && end == End::kFollow && !may_follow(here.get(), next.get())) return errno_is(EACCES);
    ProcLink link;
    if (on_proc(here.get())) {
      auto found = proc_link(here.get(), name);
      if (!found) return errno_is(found.error());
      link = *std::move(found);
    } else {
      link.text = link_text(next.get(), "");
    }
    if (link.file.valid()) {
      here = std::move(link.file);
      if (!rest.empty() && !is_directory(here.get())) return errno_is(ENOTDIR);
      continue;
    }
    if (link.text.empty()) return errno_is(ENOENT);
    if (is_mask(link.text)) {
      barred_ = {join(path_of(here.get()), name), std::string(rest)};
      return errno_is(EACCES);
    }
    if (link.text.size() + rest.size() > kMostText) return errno_is(ENAMETOOLONG);
    text = link.text + std::string(rest);
    rest = text;
    if (rest.starts_with('/')) here = UniqueFd(::fcntl(root_, F_DUPFD_CLOEXEC, 0));
    if (!here.valid()) return errno_is(errno);
  }
  return here;
}

PathResolver::Barred PathResolver::barred(int start, std::string_view path, Last last) {
  barred_ = {};
  (void)resolve_slow(start, path, last == Last::kStay ? End::kStay : End::kFollow);
  return std::move(barred_);
}

OrErrno<PathResolver::ProcLink> PathResolver::proc_link(int dir, const std::string& name) {
  ProcLink link;
  struct stat now{};
  if (::fstat(dir, &now) == 0 && now.st_ino == kProcRoot) {
    const Caller::Ids ids = name.ends_with("self") ? caller_.ids_inside() : Caller::Ids{};
    if (name == "self") link.text = format("{}", ids.tgid);
    else if (name == "thread-self") link.text = format("{}/task/{}", ids.tgid, ids.tid);
    else link.text = link_text(dir, name.c_str());
    return link;
  }
  if ((extra_ & RESOLVE_NO_MAGICLINKS) != 0) return errno_is(ELOOP);
  auto file = open_magic_link(dir, name, caller_.ids_inside());
  if (!file) return errno_is(file.error());
  link.file = *std::move(file);
  return link;
}

bool PathResolver::is_own_process(int dir) { return process_of(dir) == format("{}", caller_.ids_inside().tgid); }

bool PathResolver::is_traced_process(int dir) {
  const int tracer = process_of(dir).empty() ? 0 : tracer_of(dir);
  return tracer != 0 && tracer == caller_.ids_inside().tid;
}

// The caller's own only. The kernel would judge our ptrace access to the others, not the caller's.
OrErrno<UniqueFd> PathResolver::open_magic_link(int dir, const std::string& name, const Caller::Ids& ids) {
  std::string_view where = std::string_view{};
  const std::string path = path_of(dir);
  where = path;
  if (!where.starts_with("/proc/")) return errno_is(EACCES);
  where.remove_prefix(5);
  if (take_component(where) != format("{}", ids.tgid)) return errno_is(EACCES);
  std::string_view part = take_component(where);
  if (part == "task") {
    take_component(where);
    part = take_component(where);
  }
  const AsCaller::Suspended ours(permissions_);
  if (part == "fd" && is_number(name)) {
    int number = -1;
    std::from_chars(name.data(), name.data() + name.size(), number);
    auto file = caller_.duplicate(number);
    return file || file.error() != EBADF ? std::move(file) : errno_is(ENOENT);
  }
  if (!part.empty()) return errno_is(EACCES);
  if (name == "cwd") return caller_.open_cwd();
  if (name == "root") return UniqueFd(::fcntl(root_, F_DUPFD_CLOEXEC, 0));
  if (name == "exe") return caller_.open_program();
  return errno_is(EACCES);
}

// fs.protected_symlinks, which the kernel asks at the end of a path: in a sticky directory that all may write to, only the caller's
// own links or those of the directory's owner.
bool PathResolver::may_follow(int dir, int link) const {
  struct stat parent{}, own{};
  if (!protected_symlinks() || ::fstat(dir, &parent) != 0 || ::fstat(link, &own) != 0) return true;
  if ((parent.st_mode & (S_ISVTX | S_IWOTH)) != (S_ISVTX | S_IWOTH)) return true;
  return own.st_uid == ::geteuid() || own.st_uid == parent.st_uid;
}

OrErrno<PathResolver::Target> PathResolver::through_link(const DirEntry& entry) {
  permissions_.narrow();
  if (++links_ > kMostLinks) return errno_is(ELOOP);
  const std::string name(entry.bare());
  const UniqueFd link = open_at(entry.dir, name.c_str(), O_NOFOLLOW, 0);
  if (!link.valid()) return errno_is(errno);
  if (!may_follow(entry.dir, link.get())) return errno_is(EACCES);
  Target target;
  std::string text;
  if (on_proc(entry.dir)) {
    auto found = proc_link(entry.dir, name);
    if (!found) return errno_is(found.error());
    target.file = std::move(found->file);
    text = std::move(found->text);
  } else {
    text = link_text(link.get(), "");
    if (is_mask(text)) return errno_is(EACCES);
  }
  if (target.file.valid()) return target;
  auto next = parent(entry.dir, text);
  if (!next) return errno_is(next.error());
  target.entry = *std::move(next);
  if (target.entry.dir == entry.dir) {  // a name beside the link: the directory outlives the place it was found at
    target.entry.held = UniqueFd(::fcntl(entry.dir, F_DUPFD_CLOEXEC, 0));
    target.entry.dir = target.entry.held.get();
    target.entry.dir_path = entry.dir_path;
  }
  return target;
}

}  // namespace belljar::broker
