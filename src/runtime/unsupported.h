// Parts of a policy that exist in the model and that nothing in this version enforces: refused by name, never ignored.
#pragma once

#include "belljar/policy.h"
#include "belljar/result.h"

namespace belljar::runtime {

// Errors: kUnimplemented, naming the key, why, and what to do instead. The first one found.
Result<void> check_supported(const Policy& policy);

}  // namespace belljar::runtime
