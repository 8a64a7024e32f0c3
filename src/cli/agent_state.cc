#include "cli/agent_state.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/paths.h"
#include "base/unique_fd.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "cli/errors.h"
#include "cli/load.h"
#include "policy/paths.h"

namespace belljar::cli {
UniqueFd open_made(UniqueFd folder, std::string_view relative) {
  while (folder.valid() && !relative.empty()) {
    const std::string part(relative.substr(0, relative.find('/')));
    relative.remove_prefix(part.size() < relative.size() ? part.size() + 1 : part.size());
    const bool made = ::mkdirat(folder.get(), part.c_str(), 0700) == 0;
    if (!made && errno != EEXIST) return {};
    UniqueFd next(::openat(folder.get(), part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!next.valid()) {
      if (errno == ENOTDIR) errno = ELOOP;  // O_DIRECTORY with O_NOFOLLOW says so of a link
      return {};
    }
    struct stat owner{};
    if (made && ::geteuid() == 0 && (::fstat(folder.get(), &owner) != 0 || ::fchown(next.get(), owner.st_uid, owner.st_gid) != 0))
      return {};
    folder = std::move(next);
  }
  return folder;
}

void make_agent_state(const LoadedPolicy& loaded) {
  const std::string& home = loaded.context.home;
  for (const std::string& path : loaded.state) {
    const FsEntry* const rule = find_rule(loaded.effective.complete, path);
    const auto& scratch = loaded.effective.policy.filesystem.scratch;
    const bool written = rule != nullptr && rule->access == Access::kWrite;
    struct stat status{};
    if ((!written && std::ranges::find(scratch, path) == scratch.end()) || ::stat(path.c_str(), &status) == 0) continue;
    // The user may have made the home a link, and CODEX_HOME lead through some.
    const std::string root = policy::is_within(path, home) ? home : parent_of(parent_of(path));
    if (!home.empty() && ::stat(root.c_str(), &status) != 0) continue;
    const std::string relative = path.substr(root == "/" ? 1 : root.size() + 1);
    if (open_made(UniqueFd(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), relative).valid()) continue;
    const int failed = errno;
    const Error error(Code::kPermissionDenied, format("what the agent keeps in {} is dropped", belljar::quoted(path)));
    print_note("warning: " + Error(error).sys(failed, "mkdirat").reason("it is not there, and cannot be made").line());
  }
}

}  // namespace belljar::cli
