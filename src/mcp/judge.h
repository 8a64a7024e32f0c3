// Command rules and permission (guard/) as the judge of a sandbox.
#pragma once

#include "belljar/result.h"
#include "guard/permission_settings.h"
#include "guard/rules.h"
#include "mcp/client_sandboxes.h"

namespace belljar::mcp {

// The permission where no [permission] says otherwise: files and commands inside the sandbox run unasked, unless a rule or a check
// wants to ask. The sandbox holds them; the client asks its user besides, as clients do.
guard::PermissionSettings default_permission();

// Errors: kUnimplemented, settings that would run something outside of the sandbox.
Result<Judge> make_judge(guard::PermissionSettings settings, guard::RuleSet rules);

}  // namespace belljar::mcp
