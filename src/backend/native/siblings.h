// The clause filesystem.siblings, of every backend that hides what other sandboxes work in.
#pragma once

#include <optional>
#include <string>

#include "backend/backend.h"
#include "backend/paths/plan.h"
#include "belljar/exec_result.h"

namespace belljar::backend {

// nullopt: nobody wants them hidden. `held`: the locks are there that `mechanism` names. `detail`: what these leave open; may be
// empty. Full only where nothing of the host is shown in which a sandbox that starts later could work.
std::optional<EnforcementClause> siblings_clause(const Workplace& place, const PathPlan& paths, bool held, std::string mechanism,
                                                 std::string detail = {});

}  // namespace belljar::backend
