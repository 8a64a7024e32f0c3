// From policy to a PathPlan: which paths are writable, read-only, hidden, private; and which of the policy's wishes cannot be held
// here.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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

// Whether the command sees a tree of mounts of its own. Without one nothing is private, and no layer takes what is written.
enum class Mounts { kOwn, kNone };

// Who may do what where, as one start decides it. A value: each step (steps.h) takes one and returns the next.
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
  std::vector<std::string> beside_volumes;  // hidden names to which no volume may lead (check_volumes)

  bool may_write(std::string_view path) const;
  bool is_private(std::string_view path) const;
  bool is_private_dir(std::string_view path) const;
  const Bind* shown_by(std::string_view path) const { return deepest_at(view.binds, path); }
  // Shown from the host although a private directory lies above: a workspace below /tmp.
  bool bound(std::string_view path) const { return shown_by(path) != nullptr; }
  // The host's own name of what is shown at `path`.
  std::string behind(const std::string& path) const { return backend::behind(view, path); }

  // Every name that is hidden, as far as a path can say it.
  std::vector<std::string> hidden_names() const;
  // What the command may do at the host's `path`, links followed: none where it is hidden or not shown. nullopt: what is there is
  // the sandbox's own (a private directory, a layer), or the kernel's. Patterns and names that are kept by name are FileRules'
  // (live_rules.h).
  std::optional<Access> access_at(std::string_view path) const;

  void add_gap(std::string clause, const std::string& what) { add_gap(std::move(clause), what, what); }
  void add_gap(std::string clause, std::string what, std::string where);
};

// The clause `protect.removal`: of whom the `.git` of a writable root is kept from. A transaction can be taken back.
inline constexpr std::string_view kGitStays = "the workspace's own .git is not removed";
inline constexpr std::string_view kAgainstSlips = "against slips: a program that calls itself git may remove it";
inline bool keeps_git(const Policy& policy, const PathPlan& paths) {
  return !policy.filesystem.allow_git_removal && !paths.view.layered;
}

// The same place with every link resolved; what does not exist stays as it is.
Workplace canonical_place(const Host& host, Workplace place);

// Errors: the policy's, or this machine's: kInvalidArgument, kPermissionDenied or kNotFound.
Result<PathPlan> plan_paths(const Host& host, const Policy& policy, const Workplace& place, Mounts mounts = Mounts::kOwn);

}  // namespace belljar::backend
