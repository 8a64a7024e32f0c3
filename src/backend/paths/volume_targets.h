// Where volumes are shown in the workspace: a mount needs a directory there, as it does with container engines.
#pragma once

#include <string>

#include "backend/backend.h"
#include "belljar/policy.h"
#include "belljar/result.h"

namespace belljar::backend {

// Makes those that are missing, where the workspace can be written to; they stay. `shown_at`: what the workspace is called inside.
// Where a link or a file is in the way nothing is made, and the plan says so. Errors: kPermissionDenied.
Result<void> make_volume_targets(const Policy& policy, const Workplace& place, const std::string& shown_at);

}  // namespace belljar::backend
