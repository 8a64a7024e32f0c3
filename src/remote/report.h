// How a policy holds on a machine that is not ours, clause by clause, and the keys that make no sense there.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"

namespace belljar::remote {

// How far the service holds a clause of the policy (`holds`), and by which of its means.
struct ClauseEnforcement {
  Enforced enforced = Enforced::kNone;
  std::string mechanism, detail;
};

// The facts of a cloud that the report and the refusals name.
struct CloudTraits {
  std::string_view backend;  // "e2b"
  std::string_view options;  // the type that has its on_stop, for people
  std::string_view image;    // what a sandbox is made of there: "template", "image"
  std::string host;          // the host that we ask
  std::string workspace;
  // Between the command and this machine, by the service's word.
  Isolation isolation = Isolation::kContainer;
  std::string_view clock;  // what ends a command that takes too long
  // Of "network" (when the policy asks for none), "limits.memory", "limits.cpus", "limits.disk".
  std::function<ClauseEnforcement(std::string_view clause)> holds;
};

// Errors: kUnimplemented, by name.
Result<void> check_remote_policy(const Policy& policy, const SandboxConfig& config, const CloudTraits& traits);

EnforcementReport report_remote(const Policy& policy, const CloudTraits& traits);

}  // namespace belljar::remote
