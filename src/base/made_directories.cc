// mkdir -p that remembers which directories it made.
//
// mkdir(2) is tried on every part instead of asking first whether it exists: another process may make it in
// between. EEXIST is fine if a directory is there, and so are errors on a part that exists all the same
// (EROFS, EACCES of a parent).
#include "base/made_directories.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <vector>

namespace belljar {
namespace {

MadeDirectories::Failure make_each(const std::string& path, mode_t mode, std::vector<std::string>* made) {
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (::mkdir(part.c_str(), mode) == 0) {
      if (made != nullptr) made->push_back(part);
    } else if (errno != EEXIST) {
      const int error = errno;
      struct stat there{};
      if (::stat(part.c_str(), &there) != 0 || !S_ISDIR(there.st_mode)) return {error, part};
    }
    if (slash == std::string::npos) return {};
  }
}

}  // namespace

MadeDirectories::~MadeDirectories() {
  for (; owner_.is_this() && !made_.empty(); made_.pop_back()) ::rmdir(made_.back().c_str());
}

void MadeDirectories::keep() noexcept {
  for (const std::string& path : made_) ::chmod(path.c_str(), 0700);
  made_.clear();
}

MadeDirectories::Failure MadeDirectories::make(const std::string& path) { return make_each(path, 0700 | kTemporary, &made_); }

MadeDirectories::Failure make_directories(const std::string& path) {
  const auto failure = make_each(path, 0700, nullptr);
  for (std::size_t slash = path.find('/', 1); failure.errnum == 0; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    struct stat status{};
    if (::stat(part.c_str(), &status) == 0 && (status.st_mode & 07777U) == (0700U | kTemporary)) ::chmod(part.c_str(), 0700);
    if (slash == std::string::npos) break;
  }
  return failure;
}

}  // namespace belljar
