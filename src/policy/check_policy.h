// What the parser and merge() refuse, of a policy that passed neither because somebody wrote it in code.
#pragma once

#include "belljar/policy.h"
#include "belljar/result.h"

namespace belljar::policy {

// Paths are absolute (caches also `~/...`), patterns absolute or begin with `**/`; names, lists and times are as in a file. What
// merge() made passes. Errors: kInvalidArgument, with the key and the value.
Result<void> check_policy(const Policy& policy);

}  // namespace belljar::policy
