// What of a policy holds on a machine that is not ours, said clause by clause; and what of it makes no sense there.
#pragma once

#include "belljar/e2b.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"

namespace belljar::remote::e2b {

// Errors: kUnimplemented, by name.
Result<void> check_served(const Policy& policy, const SandboxConfig& config);

EnforcementReport report_remote(const Policy& policy, const std::string& host, const std::string& workspace);

}  // namespace belljar::remote::e2b
