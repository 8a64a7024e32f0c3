// Checks that a layer from inside the workspace only narrows: the command can write there, so such a layer
// must never open anything (CVE-2025-59532, CVE-2026-25725: a policy file that the sandboxed agent wrote for its
// own next run).
#pragma once

#include "belljar/policy.h"
#include "belljar/result.h"
#include "policy/layer.h"

namespace belljar::policy {

// Whether `setting`, its paths resolved, takes away or keeps what `in_force` (complete entries) grants.
// Errors: kPermissionDenied with the key, the file and line, and what is in force.
Result<void> check_narrows(const Setting& setting, const Policy& in_force);

// Variables that make a program load code, take other settings or talk to another host: never set from inside the workspace.
bool is_steering_variable(std::string_view name) noexcept;

}  // namespace belljar::policy
