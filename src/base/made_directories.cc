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

namespace belljar {

MadeDirectories::~MadeDirectories() {
  for (; owner_.is_this() && !made_.empty(); made_.pop_back()) ::rmdir(made_.back().c_str());
}

MadeDirectories::Failure MadeDirectories::make(const std::string& path) {
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (::mkdir(part.c_str(), 0700) == 0) {
      made_.push_back(part);
    } else if (errno != EEXIST) {
      const int error = errno;
      struct stat there{};
      if (::stat(part.c_str(), &there) != 0 || !S_ISDIR(there.st_mode)) return {error, part};
    }
    if (slash == std::string::npos) return {};
  }
}

}  // namespace belljar
