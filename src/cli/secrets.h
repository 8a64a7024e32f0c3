// Values that no trail and no log may hold.
#pragma once

#include <map>
#include <string>

#include "belljar/policy.h"
#include "belljar/redact.h"

namespace belljar::cli {

// The values of variables that look like a secret's, the caller's and those that the policy sets; and of each variable of the
// caller's that a credential comes from (network.credentials), whatever its name.
Redactor secrets_of(const Policy& policy, const std::map<std::string, std::string>& caller_env);

}  // namespace belljar::cli
