// Turns an embedder's input (a policy written in code, a directory, an environment) into the input of the other rooms.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "egress/intercept.h"
#include "runtime/violations.h"

namespace belljar::runtime {

struct Embedded {
  Policy policy;                            // with what the built-in profile gives below the caller's own settings
  std::shared_ptr<const Filesystem> rules;  // all that find_rule() needs for any path; null: the mode has no rules
  backend::Workplace place;
  std::string named;  // another name of the workspace, absolute: as it was given, through symbolic links; empty: it has none
  std::vector<std::string> caller_env;
  std::shared_ptr<const Origins> origins;  // of the policy's values; null: nobody says
};

// `workspace`: empty is the current directory. `caller_env`: empty is this process's own. Errors: kInvalidArgument, kNotFound,
// kPermissionDenied for the workspace; kInvalidArgument for the policy.
Result<Embedded> embed(const Policy& policy, const std::string& workspace, const std::map<std::string, std::string>& caller_env);

// The TLS interceptor of a program that links the library.
egress::MakeInterceptor library_interceptor() noexcept;

}  // namespace belljar::runtime
