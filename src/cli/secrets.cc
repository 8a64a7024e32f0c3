#include "cli/secrets.h"

#include "policy/tls_interception.h"

namespace belljar::cli {

Redactor secrets_of(const Policy& policy, const std::map<std::string, std::string>& caller_env) {
  Redactor secrets = Redactor::from_environment(caller_env);
  secrets.add_environment(policy.environment.set);
  for (const auto& [name, value] : caller_env) {
    if (policy::is_credential_source(policy.network, name)) secrets.add(name, value);
  }
  return secrets;
}

}  // namespace belljar::cli
