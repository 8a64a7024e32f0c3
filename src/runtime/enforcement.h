// The rule that nothing weakens in silence, for a whole enforcement report.
#pragma once

#include <string>
#include <vector>

#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "launch/launcher.h"
#include "launch/plan.h"

namespace belljar::runtime {

// A clause that reads `none` must be in `policy.accept`; one in `policy.require` must be in the report and read `full` (accept does
// not help it). So must `isolation` where the policy asks for one. `partial` passes: the report says so. The first clause that
// fails is the error (kFailedPrecondition): its name, why, what to do.
Result<void> check_required(const EnforcementReport& report, const Policy& policy);

// Takes from `report` what optional operations of `plan` that failed were to hold: their clauses are `partial` then, with the
// reason.
void lower_skipped(const launch::Plan& plan, const std::vector<launch::SkippedOp>& skipped, EnforcementReport& report);

// The broker of this start is not ordered among other sandboxes, for that reason: what depends on it is `partial` then.
void lower_alone(const std::string& why, EnforcementReport& report);

}  // namespace belljar::runtime
