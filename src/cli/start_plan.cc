// What a start would decide before it touches the kernel, for `policy check` and `policy explain --path`.
//
// Both start nothing and must not have an opinion of their own. So they call the functions that a start
// calls: the checks of the policy, of what is served, of limits, then the path plan of the native backend and
// the broker's rules by name. What only the machine can answer at the time (`require`, `accept`) is left out.
//
// hold_to_plan() corrects an answer that was found in the rules alone. The plan may know better: a volume is
// shown at the path, a name is protected wherever it lies in the workspace, or another sandbox of the user
// works there and its directory is hidden.
#include "cli/start_plan.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/native/sockets.h"
#include "backend/paths/host.h"
#include "backend/paths/live_rules.h"
#include "backend/paths/plan.h"
#include "backend/paths/view.h"
#include "base/format.h"
#include "base/paths.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/state_dir.h"
#include "broker/file_rules.h"
#include "cli/load.h"
#include "policy/backends.h"
#include "policy/check_policy.h"
#include "policy/explain.h"
#include "policy/merge.h"
#include "policy/paths.h"
#include "runtime/limits.h"
#include "runtime/living.h"
#include "runtime/unsupported.h"

namespace belljar::cli {
namespace {

bool has_file_rules(const Policy& policy) noexcept {
  return policy.mode != Mode::kDangerFullAccess && policy.mode != Mode::kExternalSandbox;
}

// What stands beside a name, as the host has it now.
class HostSurroundings final : public broker::Surroundings {
 public:
  HostSurroundings(const backend::Host& host, std::string_view path) : host_(host), parent_(parent_of(path)) {}
  bool exists(int up, std::string_view name) const override {
    std::string directory = parent_;
    for (int i = 0; i < up; ++i) directory = parent_of(directory);
    return host_.facts((directory == "/" ? "" : directory) + "/" + std::string(name)).kind != backend::PathKind::kAbsent;
  }

 private:
  const backend::Host& host_;
  std::string parent_;
};

// No mount holds it: a pattern is the broker's, and of a default secret that its own mode closes, or that is not there, the plan
// says nothing. What a volume shows is none of those.
bool is_rules_alone(const backend::PathPlan& paths, const policy::PathAnswer& answer) {
  if (answer.access != Access::kNone) return false;
  const backend::Bind* shown = paths.shown_by(answer.target);
  return answer.rule.entry.glob || (answer.rule.target != "/" && (shown == nullptr || shown->source == shown->target));
}

}  // namespace

Result<StartPlan> plan_start(const backend::Host& host, const Policy& policy, const policy::MergeContext& context) {
  backend::Workplace place = backend::canonical_place(host, workplace_of(context, context.workspace));
  place.siblings =
      BELLJAR_TRY(runtime::hide_siblings(policy, Siblings::kShown, place, runtime::look_at_living(default_state_dir())));
  StartPlan plan{.paths = BELLJAR_TRY(backend::plan_paths(host, policy, place)), .rules = nullptr, .siblings = {}};
  if (place.siblings) plan.siblings = place.siblings->hidden;
  BELLJAR_TRY(backend::list_sockets(host, policy, plan.paths.writable));
  if (!policy.allow_nested_userns) plan.rules = backend::make_file_rules(policy, plan.paths);
  return plan;
}

Result<void> check_start(const backend::Host& host, const policy::Effective& effective, const policy::MergeContext& context) {
  Policy policy = effective.policy;
  policy.limits.write_quota.reset();  // warnings_of_start()
  policy.commands = {};
  policy.permission = {};
  BELLJAR_CHECK(policy::check_policy(policy));
  BELLJAR_CHECK(runtime::check_supported(policy));
  BELLJAR_CHECK(runtime::check_limits(policy.limits));
  if (!policy::is_backend(policy.backend))
    return Error(Code::kUnimplemented, format("there is no backend {}", belljar::quoted(policy.backend)))
        .next(policy::backend_hint(policy.backend));
  const std::vector<std::string> order = BELLJAR_TRY(policy::backend_order(policy.backend, policy.fallback, policy.isolation));
  BELLJAR_CHECK(policy::check_backend_keys(policy, order));
  if (std::ranges::none_of(order, [&](const std::string& name) { return policy::too_weak(name, policy.isolation).empty(); }))
    return policy::too_weak_error(order.front(), policy.isolation);
  const bool ours = order.front() == "native" || order.front() == "landlock";
  if (ours && has_file_rules(policy)) BELLJAR_TRY(plan_start(host, policy, context));
  return {};
}

std::vector<std::string> warnings_of_start(const Policy& policy) {
  std::vector<std::string> warnings;
  const auto warn = [&](bool set, std::string_view key) {
    if (set) warnings.push_back(format("{} is for `belljar mcp` and `belljar agent`; `belljar run` refuses it", key));
  };
  warn(policy.limits.write_quota.has_value(), "limits.write_quota");
  warn(!policy.commands.allow.empty(), "commands.allow");
  warn(!policy.commands.deny.empty(), "commands.deny");
  warn(policy.permission.mode == "plan", "permission.mode = \"plan\"");
  return warnings;
}

void hold_to_plan(const backend::Host& host, const StartPlan& plan, const std::string& workspace, policy::PathAnswer& answer) {
  for (const std::string& sibling : plan.siblings) {
    if (!policy::is_within(answer.target, sibling) || policy::is_within(answer.target, workspace)) continue;
    answer.access = Access::kNone;
    answer.note = format("another sandbox of yours works in {} (filesystem.siblings)", belljar::quoted(sibling));
    return;
  }
  const bool by_rule = answer.access == Access::kWrite;
  if (const auto planned = plan.paths.access_at(answer.target); planned && !is_rules_alone(plan.paths, answer)) {
    answer.access = *planned;
    const backend::Bind* shown = plan.paths.shown_by(answer.target);
    if (answer.note.empty() && shown != nullptr && shown->source != shown->target)
      answer.note = format("the volume {} is shown there", belljar::quoted(shown->source));
  }
  if (!by_rule && answer.access != Access::kWrite) return;
  const backend::PathKind kind = host.facts(answer.target).kind;
  const bool directory = kind == backend::PathKind::kDirectory;
  // A directory is written to by making names in it.
  const std::string name = directory ? answer.target + "/name" : answer.target;
  broker::Ruling ruling;
  if (plan.rules != nullptr) {
    const broker::Act act = directory || kind == backend::PathKind::kAbsent ? broker::Act::kCreate : broker::Act::kWrite;
    ruling = plan.rules->rule_for(act, name, false, HostSurroundings(host, name));
  }
  if (answer.access == Access::kWrite && ruling.answer != broker::Answer::kRefuse) {
    // Such names are held at the roots of what is writable and of work trees, not wherever one stands.
    if (answer.kept_by_name && ruling.answer == broker::Answer::kAllow) answer.note.clear();
    return;
  }
  if (answer.access == Access::kWrite) answer.access = Access::kRead;
  if (answer.note.empty() && ruling.answer == broker::Answer::kRefuse)
    answer.note = format("{} keeps it from being written; allowed is {}", ruling.rule, ruling.allowed);
}

}  // namespace belljar::cli
