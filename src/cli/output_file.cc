// Files that an option names and we write: `--report`, `learn --output`.
//
// We write with our own rights, outside of the sandbox, to a path of which a part may lie where commands
// write. So a symbolic link that an earlier command left must not lead us to another file. The path is split
// where it first enters a writable root: up to there nobody inside has a say, and from there on no link is
// followed, openat2(2) with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS. Outside of all roots a link on the way
// is the user's own affair, but the last name must be no link.
//
// /dev/fd/N and its like are links by nature and stand for a descriptor that the caller opened, so they are
// followed.
#include "cli/output_file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <vector>

#include "base/format.h"
#include "base/real_path.h"
#include "cli/errors.h"
#include "kernel/sys.h"
#include "policy/paths.h"

namespace belljar::cli {
namespace {

constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;

std::vector<std::string> writable_roots(const LoadedPolicy& loaded) {
  std::vector<std::string> roots{loaded.context.workspace};
  for (const FsEntry& entry : loaded.effective.policy.filesystem.entries) {
    if (entry.access == Access::kWrite && !entry.glob) roots.push_back(entry.path);
  }
  return roots;
}

// Where a path, as it is spelled, first comes to lie in a writable root: up to there nobody inside has a say on links.
struct SplitPath {
  std::string top;  // a directory of the root, canonical; empty: the path never enters one
  std::string rest;
};

SplitPath split_at_root(const std::string& path, const std::vector<std::string>& roots) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const std::string real = real_path(path.substr(0, slash));
    if (real.empty()) break;
    if (std::ranges::any_of(roots, [&](const std::string& root) { return policy::is_within(real, root); }))
      return {real, path.substr(slash + 1)};
  }
  return {};
}

int open_below(const SplitPath& split) {
  const UniqueFd top(::open(split.top.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!top.valid()) return -errno;
  open_how how{};
  how.flags = kFlags;
  how.mode = 0666;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  return kernel::sys::openat2(top.get(), split.rest.c_str(), how);
}

// A link of the kernel's that leads to what we have open.
bool is_own_stream(std::string_view path) {
  return path == "/dev/stdout" || path == "/dev/stderr" ||
         (path.starts_with("/dev/fd/") && path.find_first_not_of("0123456789", 8) == std::string_view::npos);
}

int open_output(const std::string& path, const LoadedPolicy& loaded) {
  const int follow = is_own_stream(path) ? 0 : O_NOFOLLOW;
  const std::string full = path.starts_with('/') ? path : loaded.context.cwd + "/" + path;
  const SplitPath split = follow == 0 ? SplitPath{} : split_at_root(policy::normal(full), writable_roots(loaded));
  if (!split.top.empty()) return open_below(split);
  const int file = ::open(path.c_str(), kFlags | follow, 0666);
  return file < 0 ? -errno : file;
}

// Which places commands can write is not known yet, so no link is followed anywhere.
int open_without_links(const std::string& path) {
  if (is_own_stream(path)) {
    const int file = ::open(path.c_str(), kFlags, 0666);
    return file < 0 ? -errno : file;
  }
  open_how how{};
  how.flags = kFlags;
  how.mode = 0666;
  how.resolve = RESOLVE_NO_SYMLINKS;
  return kernel::sys::openat2(AT_FDCWD, path.c_str(), how);
}

Result<UniqueFd> created(int file, const std::string& path, std::string_view what, std::string_view option) {
  if (file >= 0) return UniqueFd(file);
  return Error(Code::kInvalidArgument, format("cannot create {} {}", what, belljar::quoted(path)))
      .sys(-file, "open")
      .next(file == -ELOOP ? std::string("a symbolic link is not followed here: name the file itself")
                           : format("choose another {} FILE", option));
}

Result<void> check_name(const std::string& path, std::string_view what, std::string_view option) {
  if (path != "-") return {};
  return Error(Code::kInvalidArgument, format("cannot create {} `-`", what))
      .reason("it would be a file of that name in the current directory")
      .next(format("{} /dev/stdout, or {} ./- for the file", option, option));
}

}  // namespace

Result<UniqueFd> create_output(const std::string& path, std::string_view what, std::string_view option,
                               const LoadedPolicy& loaded) {
  BELLJAR_CHECK(check_name(path, what, option));
  return created(open_output(path, loaded), path, what, option);
}

UniqueFd create_report_of_refusal(const std::string& path, const Error& refused) {
  if (path.empty()) return {};
  const auto checked = check_name(path, "the report", "--report");
  auto file = checked ? created(open_without_links(path), path, "the report", "--report") : Result<UniqueFd>(checked.error());
  if (file) return *std::move(file);
  if (file.error().what() != refused.what()) print_error(file.error());
  return {};
}

Result<void> check_report(int fd, const std::string& path) {
  struct stat own{}, there{};
  if (::fstat(fd, &own) != 0 || !S_ISREG(own.st_mode)) return {};
  const int follow = path.starts_with("/dev/") ? 0 : AT_SYMLINK_NOFOLLOW;
  const bool same =
      ::fstatat(AT_FDCWD, path.c_str(), &there, follow) == 0 && there.st_ino == own.st_ino && there.st_dev == own.st_dev;
  if (same && ::ftruncate(fd, 0) == 0) return {};
  return Error(Code::kAborted, format("cannot vouch for the report {}", belljar::quoted(path)))
      .reason("the command removed it or put another file there")
      .next("name a file that the command cannot write to");
}

Result<void> write_line(int fd, std::string text, std::string_view what) {
  text += '\n';
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t wrote = ::write(fd, rest.data(), rest.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      const int why = errno;
      return Error(Code::kUnavailable, format("cannot write {}", what))
          .sys(why, "write")
          .next(why == EBADF ? "leave stdout open, or use --report FILE" : "free some space, or choose another place");
    }
    rest.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return {};
}

}  // namespace belljar::cli
