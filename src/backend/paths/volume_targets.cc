#include "backend/paths/volume_targets.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "backend/backend.h"
#include "backend/paths/host.h"
#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"

namespace belljar::backend {
namespace {

constexpr int kDirectory = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// `name` in `parent`, made if there is nothing; it belongs to whoever the parent belongs to, also where root makes it.
UniqueFd open_or_make(const UniqueFd& parent, const std::string& name) {
  UniqueFd directory(::openat(parent.get(), name.c_str(), kDirectory));
  if (directory.valid() || errno != ENOENT) return directory;
  if (::mkdirat(parent.get(), name.c_str(), 0755) != 0) return {};
  directory = UniqueFd(::openat(parent.get(), name.c_str(), kDirectory));
  struct stat owner{};
  if (directory.valid() && ::geteuid() == 0 && ::fstat(parent.get(), &owner) == 0 &&
      ::fchownat(directory.get(), "", owner.st_uid, owner.st_gid, AT_EMPTY_PATH) != 0)
    return {};
  return directory;
}

// Name by name, and through no link: the workspace is the command's to change.
Result<void> make_below(const std::string& workspace, std::string_view relative, const Volume& volume) {
  UniqueFd at(::open(workspace.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  while (at.valid() && !relative.empty()) {
    const std::size_t slash = relative.find('/');
    at = open_or_make(at, std::string(relative.substr(0, slash)));
    relative.remove_prefix(slash == std::string_view::npos ? relative.size() : slash + 1);
  }
  if (at.valid() || errno == ELOOP || errno == ENOTDIR) return {};
  return Error(Code::kPermissionDenied, format("cannot make {} for the volume {}", quoted(volume.target), quoted(volume.source)))
      .sys(errno, "mkdirat")
      .next("make the directory first");
}

}  // namespace

Result<void> make_volume_targets(const Policy& policy, const Workplace& place, const std::string& shown_at) {
  if (policy.mode != Mode::kWorkspaceWrite || place.layers) return {};
  for (const Volume& volume : policy.filesystem.volumes) {
    struct stat source{};
    const bool is_directory = ::stat(volume.source.c_str(), &source) == 0 && S_ISDIR(source.st_mode);
    if (!is_directory || volume.target == shown_at || !is_under(volume.target, shown_at)) continue;
    BELLJAR_CHECK(make_below(place.workspace, std::string_view(volume.target).substr(shown_at.size() + 1), volume));
  }
  return {};
}

}  // namespace belljar::backend
