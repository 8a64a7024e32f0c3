// The enforcement report of the tier without namespaces. Written from what was planned, not from what was asked.
#pragma once

#include "backend/backend.h"
#include "backend/paths/host.h"
#include "backend/paths/plan.h"
#include "belljar/policy.h"

namespace belljar::backend {

EnforcementReport report_landlock_tier(const Host& host, const Policy& policy, const Workplace& place, const PathPlan& paths,
                                       const Prepared& prepared);

// Ports are to be kept from the command. Without the host's network there is no internet socket at all.
bool holds_ports(const Policy& policy) noexcept;

}  // namespace belljar::backend
