// What both compilers cannot hold, and what they share of the file system's rules.
#pragma once

#include <string_view>
#include <vector>

#include "belljar/policy.h"
#include "policy/compile.h"

namespace belljar::policy {

// Limits, layers, mounts at other places: what only Linux's means hold. `held`: the keys that the other system's text has itself.
std::vector<CompileGap> common_gaps(const Policy& policy, std::string_view system, const std::vector<std::string_view>& held);
// Every rule, volumes at their own places among them.
Filesystem with_volumes(const Effective& effective);
// The rules for literal paths, less specific ones first, of one path the strictest last; each path once.
std::vector<FsEntry> in_order(const Filesystem& complete);
// Errors: kFailedPrecondition, `require` names a clause with a gap.
Result<Compiled> finish(Compiled compiled, const Policy& policy, std::string_view system);

}  // namespace belljar::policy
