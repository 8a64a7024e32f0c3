// What one sandbox needs where TLS is looked into (policy/tls_interception.h): its authority, the files and variables that make
// programs inside trust it, and the credentials. Made before the backend prepares, since the files belong to its plan.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "belljar/command.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "egress/credentials.h"
#include "egress/intercept.h"

namespace belljar::runtime {

class SecretPage;

class Interception {
 public:
  // Nothing when the policy asks for none. Adds the files to `place`, and takes values out of its environment. `caller_env`: where
  // a credential's variable is looked for, then this process's own. Errors: kUnimplemented without `make`; kNotFound and
  // kInvalidArgument, a credential's value; as MakeInterceptor.
  static Result<std::optional<Interception>> create(const Policy& policy, egress::MakeInterceptor make,
                                                    const std::vector<std::string>& caller_env, backend::Workplace& place);
  Interception(Interception&&) noexcept;
  Interception& operator=(Interception&&) noexcept;
  ~Interception();

  // The variables, unless the policy or the command sets them itself, and the clauses.
  void plan(const Policy& policy, const Command& command, std::vector<std::string>& env, EnforcementReport& report) const;
  std::shared_ptr<egress::Interceptor> interceptor() const { return interceptor_; }
  // With their values: to be called once the sandbox's first process is made, whose memory is a copy of ours.
  egress::Credentials credentials() const;

 private:
  struct StoredCredential {
    policy::Credential rule;
    std::string placeholder;
    std::unique_ptr<SecretPage> value;
  };
  Interception() = default;
  Result<void> hold(const policy::Credential& rule, const std::vector<std::string>& caller_env, const std::string& home);
  void clean(std::vector<std::string>& env) const;
  std::shared_ptr<egress::Interceptor> interceptor_;
  std::vector<StoredCredential> held_;
};

}  // namespace belljar::runtime
