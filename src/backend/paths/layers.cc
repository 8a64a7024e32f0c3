#include <algorithm>
#include <string>
#include <utility>

#include "backend/backend.h"
#include "backend/paths/host.h"
#include "backend/paths/plan.h"
#include "backend/paths/plan_input.h"
#include "backend/paths/steps.h"
#include "backend/paths/view.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::backend {

Result<PathPlan> plan_layers(PathPlan plan, const PlanInput& input) {
  if (!input.place.layers) return plan;
  const auto refused = [](std::string reason, std::string next) {
    return Error(Code::kInvalidArgument, "cannot run in a transaction (--txn)").reason(std::move(reason)).next(std::move(next));
  };
  if (std::find(plan.writable.begin(), plan.writable.end(), input.place.workspace) == plan.writable.end())
    return refused("the policy does not make the workspace writable, so there is nothing to hold back", "drop --txn");
  for (const Bind& bind : plan.view.binds) {
    if (!bind.readonly && bind.source != bind.target && bind.source != input.place.workspace &&
        is_under(input.place.workspace, bind.source))
      return refused(
          format("the volume {} shows the workspace a second time, writable and outside of the transaction", quoted(bind.target)),
          "make the volume read-only, or drop --txn");
  }
  plan.view.layered = LayeredWorkspace{input.place.workspace, *input.place.layers};
  return plan;
}

}  // namespace belljar::backend
