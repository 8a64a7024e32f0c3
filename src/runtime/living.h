// Which directories the living sandboxes of this user work in: STATE/living/NAME, a file for each sandbox (or pool) with its
// directories, which is locked (flock(2)) as long as the sandbox lives, whatever ends it. Files that nobody holds any more are
// removed by who asks for them, and now and then by who does not. The state directory is hidden from every sandbox, so no command
// reads or holds one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "belljar/policy.h"
#include "belljar/result.h"

namespace belljar::runtime {

struct Living {
  std::shared_ptr<void> record;     // of this one, to be kept as long as it lives; null: none could be made
  std::vector<std::string> others;  // the directories of all others, where they were asked for
  std::string why_not;              // why there is no record, one clause
};

enum class Others { kAsked, kNotAsked };

// Writes a record with `directories` and then reads those of the others: of two that start at once, at least one sees the other.
// Never fails; where no record can be made, why_not says why. After a fork(2) that no execve(2) follows the child holds it, too.
Living enter_living(const std::string& state_dir, const std::vector<std::string>& directories, Others others);
// The others as they are now, for who starts nothing.
Living look_at_living(const std::string& state_dir);

// The value for Workplace::siblings: nothing where they are shown. `unset`: what filesystem.siblings is where the policy says
// nothing. Errors: kInvalidArgument, the policy hides them in a mode without file rules.
Result<std::optional<backend::SiblingWorkspaces>> hide_siblings(const Policy& policy, Siblings unset,
                                                                const backend::Workplace& place, const Living& living);

}  // namespace belljar::runtime
