#include "session/lifecycle.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/format.h"
#include "base/remove_tree.h"
#include "base/unique_fd.h"
#include "session/files.h"

namespace belljar::session {

Result<void> ready_workspace(const std::string& path, const Lifecycle& lifecycle) {
  if (lifecycle.remove_workspace && ::mkdir(path.c_str(), 0700) < 0 && errno != EEXIST)
    return Error(Code::kFailedPrecondition, format("cannot make the workspace {}", quoted(path))).sys(errno, "mkdir");
  if (!lifecycle.empty_workspace) return {};
  const UniqueFd directory(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) return file_error(errno, "empty", path, "open");
  return remove_entries_at(directory.get());
}

}  // namespace belljar::session
