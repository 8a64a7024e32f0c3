// Landlock rules and the system call filter for a planned tree.
#pragma once

#include "backend/paths/plan.h"

namespace belljar::backend {

// `prepared` has its rules and its network; its plan is filled in.
void confine(const Host& host, const Policy& policy, const Workplace& place, const PathPlan& paths, Prepared& prepared);

}  // namespace belljar::backend
