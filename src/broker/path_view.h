// Resolves a path as the caller would: from its root and its working directory, with its permissions.
//
// The result answers "which inode did the caller mean", nothing more. No access follows from it (a connection goes to a descriptor
// that was noted before), so a link that moves under our eyes costs the caller an errno and nobody anything else. What a caller may
// learn is held to what its own view would tell: RESOLVE_IN_ROOT keeps every link and ".." inside its root.
#pragma once

#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "broker/caller.h"
#include "broker/or_errno.h"

namespace belljar::broker {

class PathView {
 public:
  // Opens what resolving `path` starts from. Needs our own privileges (ptrace access to the caller).
  static OrErrno<PathView> create(Caller& caller, std::string_view path);
  // An O_PATH descriptor, links followed. To be called with the caller's permissions. May block on a slow file system.
  OrErrno<UniqueFd> open() const;

 private:
  UniqueFd root_;
  UniqueFd start_;          // working directory or the descriptor of a /proc/self/fd path; none: the root
  std::string start_path_;  // of start_ below the root, when known
  std::string path_;        // relative to start_; empty: start_ itself
};

}  // namespace belljar::broker
