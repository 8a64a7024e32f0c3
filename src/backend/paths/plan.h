// From policy to a PathPlan: which paths are writable, read-only, hidden, private; and which of the policy's wishes cannot be held
// here.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "backend/paths/host.h"
#include "backend/paths/view.h"
#include "belljar/policy.h"
#include "belljar/result.h"

namespace belljar::backend {

// A wish that no mount can hold, for the report.
struct Gap {
  std::string clause;
  std::string what;               // as the policy names it
  std::string where = {};         // an absent name: where it would stand, links on the way resolved
  Access access = Access::kRead;  // of a pattern
};

struct PathPlan {
  View view;
  std::vector<std::string> writable;  // canonical roots, shallow first
  std::vector<std::string> readonly;  // below writable roots
  std::vector<std::string> pinned;    // ancestors of protected directories, so that they cannot be renamed away
  std::vector<std::string> readable;  // restricted root only
  std::vector<std::string> emptied;   // hidden names that are directories of ours instead, for who needs one
  std::vector<std::string> ways;      // hidden directories above something writable: only the way to it is seen
  std::size_t hidden = 0;             // names hidden, existing or not
  std::size_t protected_dirs = 0;
  std::vector<Gap> gaps;
};

// The clause `protect.removal`: of whom the `.git` of a writable root is kept from. A transaction can be taken back.
inline constexpr std::string_view kGitStays = "the workspace's own .git is not removed";
inline constexpr std::string_view kAgainstSlips = "against slips: a program that calls itself git may remove it";
inline bool keeps_git(const Policy& policy, const PathPlan& paths) {
  return !policy.filesystem.allow_git_removal && !paths.view.layered;
}

// The same place with every link resolved; what does not exist stays as it is.
Workplace canonical_place(const Host& host, Workplace place);

Result<PathPlan> plan_paths(const Host& host, const Policy& policy, const Workplace& place);

}  // namespace belljar::backend
