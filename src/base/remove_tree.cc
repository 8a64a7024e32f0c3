// Removing a tree that an untrusted command wrote, without following anything in it.
//
// One descriptor for each level is held open, and every call names one component below it, so that a
// directory which is exchanged for a link meanwhile leads nowhere. Directories may be closed to their owner:
// each is opened by chmod through /proc/self/fd before it is read, since chmod(2) by name would follow a
// link.
//
// The depth is the attacker's choice. Below 512 levels a directory is moved to the top of the tree and
// removed there: neither descriptors nor PATH_MAX limit what can be removed. Other file systems that are
// mounted below are left alone; the removal of their mount point fails and is reported.
#include "base/remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>  // IWYU pragma: keep (renameat2)
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar {
namespace {

struct Level {
  UniqueFd fd;
  std::string name;  // in the level above
  std::vector<std::string> subdirectories;
};

// Removes everything but directories in `fd`; collects those.
int remove_files(int fd, dev_t device, std::vector<std::string>& subdirectories) {
  int first_error = 0;
  const int copy = ::openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* stream = copy < 0 ? nullptr : ::fdopendir(copy);
  if (stream == nullptr) {
    if (copy >= 0) ::close(copy);
    return errno;
  }
  while (const dirent* entry = ::readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    struct stat status{};
    if (::fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0) continue;
    if (S_ISDIR(status.st_mode) && status.st_dev == device) subdirectories.emplace_back(name);
    else if (::unlinkat(fd, entry->d_name, 0) < 0 && first_error == 0 && errno != ENOENT) first_error = errno;
  }
  ::closedir(stream);
  return first_error;
}

// Its owner may have closed it to itself.
void open_to_owner(int place) { ::chmod(format("/proc/self/fd/{}", place).c_str(), 0700); }

// Moves a directory to the top of the tree, where it is one more to remove: a command may nest them deeper than there are
// descriptors. `number`: names up to it are taken.
int lift(int parent, const std::string& name, Level& top, unsigned& number) {
  // Its `..` is written, rename(2).
  if (const UniqueFd place(::openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)); place.valid())
    open_to_owner(place.get());
  for (;;) {
    std::string free = format("deep-{}", number++);
    if (::renameat2(parent, name.c_str(), top.fd.get(), free.c_str(), RENAME_NOREPLACE) == 0) {
      top.subdirectories.push_back(std::move(free));
      return 0;
    }
    if (errno != EEXIST) return errno;
  }
}

}  // namespace

Result<void> remove_entries_at(int parent) {
  struct stat status{};
  std::vector<std::string> directories;
  const int error = ::fstat(parent, &status) < 0 ? errno : remove_files(parent, status.st_dev, directories);
  for (const std::string& name : directories) BELLJAR_CHECK(remove_tree_at(parent, name, Deeper::kMove));
  if (error == 0) return {};
  return Error(Code::kUnavailable, "cannot empty a directory").sys(error, "unlinkat").next("empty it by hand");
}

Result<void> remove_tree(const std::string& path) { return remove_tree_at(AT_FDCWD, path, Deeper::kMove); }

Result<void> remove_tree_at(int parent_fd, const std::string& path, Deeper deeper, const std::function<bool()>& enough) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  constexpr std::size_t kDeepest = 512;  // descriptors, one a level; what lies deeper is moved up, or reported
  std::vector<Level> levels;
  unsigned lifted = 0;
  int error = 0;
  const auto enter = [&](int parent, const std::string& name) {
    const UniqueFd place(::openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!place.valid()) return errno;
    open_to_owner(place.get());
    UniqueFd fd(::openat(place.get(), ".", kFlags));
    struct stat status{};
    if (!fd.valid() || ::fstat(fd.get(), &status) < 0) return errno;
    Level level{std::move(fd), name, {}};
    const int failed = remove_files(level.fd.get(), status.st_dev, level.subdirectories);
    levels.push_back(std::move(level));
    return failed;
  };
  struct stat status{};
  if (::fstatat(parent_fd, path.c_str(), &status, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT) return {};
  if (!S_ISDIR(status.st_mode))
    return Error(Code::kInvalidArgument, format("cannot remove {}", quoted(path))).reason("it is not a directory");
  error = enter(parent_fd, path);
  while (!levels.empty()) {
    if (enough && enough()) return Error(Code::kCanceled, format("cannot remove {}", quoted(path))).reason("it was ended before");
    Level& level = levels.back();
    if (!level.subdirectories.empty() && (levels.size() < kDeepest || deeper == Deeper::kMove)) {
      const std::string name = std::move(level.subdirectories.back());
      level.subdirectories.pop_back();
      if (levels.size() == kDeepest) {
        if (const int failed = lift(level.fd.get(), name, levels.front(), lifted); failed != 0 && error == 0) error = failed;
        continue;
      }
      if (const int failed = enter(level.fd.get(), name); failed != 0 && error == 0) error = failed;
      continue;
    }
    const std::string name = std::move(level.name);
    levels.pop_back();
    const int parent = levels.empty() ? parent_fd : levels.back().fd.get();
    if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) < 0 && error == 0) error = errno;
  }
  if (error != 0)
    return Error(Code::kUnavailable, format("cannot remove {}", quoted(path))).sys(error, "unlinkat").next("remove it by hand");
  return {};
}

}  // namespace belljar
