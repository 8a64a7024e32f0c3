// The part of this machine's environment that a sandbox elsewhere is told.
#pragma once

#include <map>
#include <string>

#include "belljar/sandbox.h"

namespace belljar::remote {

// Of the caller: `config.caller_env`, or this process's own.
std::map<std::string, std::string> caller_variables(const SandboxConfig& config);
// Of every command: what the policy sets, includes or passes by name. Nothing else is of use elsewhere.
std::map<std::string, std::string> variables_elsewhere(const SandboxConfig& config);

}  // namespace belljar::remote
