#include "runtime/enforcement.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "launch/launcher.h"
#include "launch/plan.h"

namespace belljar::runtime {
namespace {

bool contains(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

Error refuse(const EnforcementClause& clause, std::string_view what, std::string next) {
  std::string reason = clause.detail.empty() ? std::string("nothing here enforces it") : clause.detail;
  if (!clause.mechanism.empty()) reason = format("{} (held by {})", reason, clause.mechanism);
  return Error(Code::kFailedPrecondition, format("{} {} ({})", clause.clause, what, escaped(clause.asked)))
      .reason(std::move(reason))
      .next(std::move(next));
}

// A backend that says nothing of it holds none.
Result<void> check_isolation(const EnforcementReport& report, Isolation wanted) {
  if (wanted == Isolation::kNone) return {};
  const auto clause =
      std::find_if(report.begin(), report.end(), [](const EnforcementClause& c) { return c.clause == "isolation"; });
  if (clause != report.end() && clause->enforced == Enforced::kFull) return {};
  const std::string held = clause == report.end() ? std::string("this backend does not say what it isolates with") : clause->detail;
  return Error(Code::kFailedPrecondition, format("isolation {} is required, and is not to be had here", to_string(wanted)))
      .reason(clause == report.end() || clause->mechanism.empty() ? held : format("{} ({})", held, clause->mechanism))
      .next("name another backend (`belljar doctor` lists them), or ask for less isolation");
}

void lower(std::string_view name, const std::string& detail, EnforcementReport& report) {
  const auto clause = std::ranges::find_if(report, [&](const EnforcementClause& c) { return !name.empty() && c.clause == name; });
  if (clause == report.end()) return;
  if (clause->enforced == Enforced::kFull) clause->enforced = Enforced::kPartial;
  if (clause->detail.ends_with(detail)) return;
  clause->detail += (clause->detail.empty() ? "" : "; ") + detail;
}

}  // namespace

Result<void> check_required(const EnforcementReport& report, const Policy& policy) {
  BELLJAR_CHECK(check_isolation(report, policy.isolation));
  for (const std::string& name : policy.require) {
    const auto clause = std::find_if(report.begin(), report.end(), [&](const EnforcementClause& c) { return c.clause == name; });
    if (clause == report.end())
      return Error(Code::kFailedPrecondition, format("the policy requires {}, but nothing in it asks for that", quoted(name)))
          .reason("a requirement without a rule behind it would read as protection that is not there")
          .next(format("set {} in the policy, or take it out of `require`", escaped(name)));
    if (clause->enforced != Enforced::kFull)
      return refuse(*clause, format("is required, but this machine enforces it only as `{}`", to_string(clause->enforced)),
                    format("run `belljar doctor` to see what is missing, or take {} out of `require`", clause->clause));
  }
  for (const EnforcementClause& clause : report)
    if (clause.enforced == Enforced::kNone && !clause.best_effort && !contains(policy.accept, clause.clause))
      return refuse(
          clause, "cannot be enforced on this machine",
          format("run `belljar doctor` to see what is missing, or go on without it: --accept {0} (`accept = [\"{0}\"]` in a "
                 "policy)",
                 clause.clause));
  return {};
}

void lower_skipped(const launch::Plan& plan, const std::vector<launch::SkippedOp>& skipped, EnforcementReport& report) {
  for (const launch::SkippedOp& failed : skipped) {
    if (failed.op == launch::kSkippedKeyring) {
      lower(launch::kKeyringClause,
            format("the caller's session keyring stays: joining an empty one was refused (errno {})", failed.errnum), report);
      continue;
    }
    const launch::MountOp& op = plan.mounts[static_cast<std::size_t>(failed.op)];
    const std::string what = op.target.empty() ? op.source : op.target;
    lower(op.clause,
          format("{} could not be mounted (errno {}){}{}", what.empty() ? "a layer" : quoted(what), failed.errnum,
                 op.without.empty() ? "" : ": ", op.without),
          report);
  }
}

void lower_alone(const std::string& why, EnforcementReport& report) {
  lower("protect.absent",
        format("another sandbox or commit in the same directories may make the other half of a git directory: {}", why), report);
}

}  // namespace belljar::runtime
