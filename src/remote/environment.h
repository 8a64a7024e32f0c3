// The part of this machine's environment that a sandbox elsewhere is told.
#pragma once

#include <map>
#include <string>

#include "belljar/sandbox.h"

namespace belljar::remote {

// The caller's variables: `config.caller_env`, or this process's own.
std::map<std::string, std::string> caller_variables(const SandboxConfig& config);
// The variables of every command: those that the policy sets, includes or passes by name. No other is of use elsewhere.
std::map<std::string, std::string> variables_elsewhere(const SandboxConfig& config);

}  // namespace belljar::remote
