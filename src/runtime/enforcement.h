// The rule that nothing weakens in silence, for a whole enforcement report.
#pragma once

#include "belljar/exec_result.h"
#include "belljar/policy.h"

namespace belljar::runtime {

// A clause that reads `none` must be in `policy.accept`; one in `policy.require` must be in the report and read `full` (accept does
// not help it). So must `isolation` where the policy asks for one. `partial` passes: the report says so. The first clause that
// fails is the error (kFailedPrecondition): its name, why, what to do.
Result<void> check_required(const EnforcementReport& report, const Policy& policy);

}  // namespace belljar::runtime
