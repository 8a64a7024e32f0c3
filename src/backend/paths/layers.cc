#include <algorithm>
#include <string>
#include <utility>

#include "backend/backend.h"
#include "backend/paths/draft.h"
#include "backend/paths/host.h"
#include "backend/paths/steps.h"
#include "backend/paths/view.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"

namespace belljar::backend {

Result<void> plan_layers(ViewDraft& draft) {
  if (!draft.place.layers) return {};
  const auto refused = [](std::string reason, std::string next) {
    return Error(Code::kInvalidArgument, "cannot run in a transaction (--txn)").reason(std::move(reason)).next(std::move(next));
  };
  if (std::find(draft.paths.writable.begin(), draft.paths.writable.end(), draft.place.workspace) == draft.paths.writable.end())
    return refused("the policy does not make the workspace writable, so there is nothing to hold back", "drop --txn");
  for (const Bind& bind : draft.view().binds) {
    if (!bind.readonly && bind.source != bind.target && bind.source != draft.place.workspace &&
        is_under(draft.place.workspace, bind.source))
      return refused(
          format("the volume {} shows the workspace a second time, writable and outside of the transaction", quoted(bind.target)),
          "make the volume read-only, or drop --txn");
  }
  draft.view().layered = LayeredWorkspace{draft.place.workspace, *draft.place.layers};
  return {};
}

}  // namespace belljar::backend
