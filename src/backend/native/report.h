// The enforcement report: each clause of a policy, the mechanism that holds it in this plan, how far. Written from what was
// planned, not from what was asked.
#pragma once

#include "backend/paths/plan.h"

namespace belljar::backend {

EnforcementReport report_native(const Host& host, const Policy& policy, const Workplace& place, const PathPlan& paths,
                                const Prepared& prepared);
EnforcementReport report_full_access(const launch::Plan& plan);
EnforcementReport report_external(const launch::Plan& plan);

}  // namespace belljar::backend
