// What a start decides before it touches the kernel: for `policy check` and `policy explain --path`, which start nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/paths/host.h"
#include "backend/paths/plan.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "broker/file_rules.h"
#include "policy/explain.h"
#include "policy/merge.h"

namespace belljar::cli {

struct StartPlan {
  backend::PathPlan paths;
  std::shared_ptr<const broker::FileRules> rules;  // none: no file call is judged by name
  std::vector<std::string> siblings;               // directories of other sandboxes that are hidden (filesystem.siblings)
};
// As the native backend would plan it. Errors: as Backend::prepare.
Result<StartPlan> plan_start(const backend::Host& host, const Policy& policy, const policy::MergeContext& context);

// Whether `belljar run` or, where keys of its own are set, `belljar mcp` would go on to the kernel with this. What only the
// machine's report decides (`require`, `accept`) is not asked. Errors: those of a start, the first one.
Result<void> check_start(const backend::Host& host, const policy::Effective& effective, const policy::MergeContext& context);
// Keys that one of our programs takes and `belljar run` refuses, a sentence each.
std::vector<std::string> warnings_of_start(const Policy& policy);

// An answer that was found in the rules, as the plan has it: what is protected by name is not written to, what another sandbox
// works in is hidden.
void hold_to_plan(const backend::Host& host, const StartPlan& plan, const std::string& workspace, policy::PathAnswer& answer);

}  // namespace belljar::cli
