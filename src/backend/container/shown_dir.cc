#include "backend/container/shown_dir.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/format.h"
#include "base/remove_tree.h"
#include "base/unique_fd.h"
#include "base/write_all.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::backend::container {
namespace {

constexpr std::string_view kPrefix = "shown-";

Error failed(const std::string& path, int errnum, const char* call) {
  return Error(errnum == ENOSPC || errnum == EDQUOT || errnum == EMFILE ? Code::kResourceExhausted : Code::kFailedPrecondition,
               format("cannot write below {}, which the container needs", belljar::quoted(path)))
      .sys(errnum, call)
      .next("free space there, or set XDG_STATE_HOME to a directory that you and the engine can reach");
}

UniqueFd open_dir(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// With `state` locked: a directory that was just made has its own lock by the time this sees it.
void sweep(const std::string& state) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(state, ignored)) {
    if (!entry.path().filename().native().starts_with(kPrefix)) continue;
    const UniqueFd left = open_dir(entry.path());
    if (left.valid() && ::flock(left.get(), LOCK_EX | LOCK_NB) == 0) (void)remove_tree(entry.path());
  }
}

}  // namespace

Result<ShownDir> ShownDir::create(const std::string& state) {
  const UniqueFd all = open_dir(state);
  if (!all.valid()) return failed(state, errno, "open");
  while (::flock(all.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return failed(state, errno, "flock");
  }
  sweep(state);
  std::string path = format("{}/{}XXXXXX", state, kPrefix);
  if (::mkdtemp(path.data()) == nullptr) return failed(state, errno, "mkdtemp");
  ShownDir made(path, open_dir(path));
  if (!made.lock_.valid() || ::flock(made.lock_.get(), LOCK_EX | LOCK_NB) != 0) return failed(path, errno, "flock");
  return made;
}

ShownDir& ShownDir::operator=(ShownDir&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(lock_, other.lock_);
  return *this;
}

ShownDir::~ShownDir() {
  if (!path_.empty()) (void)remove_tree(path_);
}

Result<std::string> ShownDir::write(std::string_view name, std::string_view content) const {
  std::string path = format("{}/{}", path_, name);
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid()) return failed(path_, errno, "open");
  if (!write_all(file.get(), content)) return failed(path_, errno, "write");
  if (::fchmod(file.get(), 0444) != 0) return failed(path_, errno, "fchmod");
  return path;
}

}  // namespace belljar::backend::container
