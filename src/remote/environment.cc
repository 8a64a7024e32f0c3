#include "remote/environment.h"

#include <map>
#include <string>

#include "base/environment.h"
#include "belljar/policy.h"
#include "belljar/sandbox.h"
#include "policy/defaults.h"

namespace belljar::remote {
std::map<std::string, std::string> caller_variables(const SandboxConfig& config) {
  return by_name(entries_or_own(config.caller_env));
}

std::map<std::string, std::string> variables_elsewhere(const SandboxConfig& config) {
  Environment named = config.policy.environment;
  named.inherit = Inherit::kNone;
  return by_name(policy::build_environment(named, entries_or_own(config.caller_env)));
}

}  // namespace belljar::remote
