// A shared volume is locked by flock(2) on its directory. Sandboxes that use it hold the lock shared; one that
// empties it needs it alone for that moment and keeps it shared afterwards. The lock belongs to the open file
// description, so it ends with the last copy of the descriptor, also when the process is killed. A lock file
// would outlive its owner.
#include "session/lifecycle.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "base/format.h"
#include "base/remove_tree.h"
#include "base/unique_fd.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/state_dir.h"
#include "runtime/living.h"
#include "session/files.h"

namespace belljar::session {

Result<UniqueFd> ready_workspace(const std::string& path, const Lifecycle& lifecycle) {
  if (lifecycle.remove_workspace && ::mkdir(path.c_str(), 0700) < 0 && errno != EEXIST)
    return Error(Code::kFailedPrecondition, format("cannot make the workspace {}", quoted(path))).sys(errno, "mkdir");
  if (!lifecycle.shared_volume) return UniqueFd();
  UniqueFd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) return file_error(errno, "open", path, "open");
  // A file system that locks no directory (NFS) keeps nobody apart.
  if (::flock(directory.get(), (lifecycle.empty_workspace ? LOCK_EX : LOCK_SH) | LOCK_NB) < 0 && errno == EWOULDBLOCK)
    return Error(Code::kFailedPrecondition, format("cannot use the persistent volume {}", quoted(path)))
        .reason("another sandbox uses it, and one of the two empties it at its start")
        .next("stop that one first, or give each a volume of its own");
  if (!lifecycle.empty_workspace) return directory;
  BELLJAR_CHECK(remove_entries_at(directory.get()));
  // The change from alone to shared is not atomic (flock(2)): another one may empty the volume in between,
  // which is empty anyway.
  (void)::flock(directory.get(), LOCK_SH);
  return directory;
}

Result<std::shared_ptr<void>> enter_living(const Policy& policy, const Lifecycle& lifecycle, backend::Workplace& place) {
  std::vector<std::string> directories = {place.workspace};
  const bool hidden = policy.filesystem.siblings.value_or(lifecycle.siblings) == Siblings::kHidden;
  if (hidden && !lifecycle.gathered.empty()) directories.push_back(lifecycle.gathered);
  runtime::Living living =
      runtime::enter_living(default_state_dir(), directories, hidden ? runtime::Others::kAsked : runtime::Others::kNotAsked);
  if (directories.size() > 1) living.others.push_back(lifecycle.gathered);
  place.siblings = BELLJAR_TRY(runtime::hide_siblings(policy, lifecycle.siblings, place, living));
  return std::move(living.record);
}

}  // namespace belljar::session
