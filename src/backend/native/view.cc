#include "backend/native/view.h"

#include <utility>

#include "backend/backend.h"
#include "backend/native/host.h"
#include "backend/native/view_draft.h"
#include "backend/native/view_steps.h"
#include "belljar/policy.h"
#include "belljar/result.h"

namespace belljar::backend {

Result<Paths> plan_paths(const Host& host, const Policy& policy, const Workplace& place) {
  ViewDraft draft(host, policy, place);
  const FsEntry* root = find_rule(draft.fs, "/");
  draft.view().whole_root = (root == nullptr || root->access != Access::kNone) && !needs_own_root(draft);
  plan_private(draft);
  BELLJAR_CHECK(plan_writable(draft));
  BELLJAR_CHECK(plan_readable(draft));
  BELLJAR_CHECK(plan_volumes(draft));
  BELLJAR_CHECK(plan_readonly(draft));
  plan_scratch(draft);
  plan_protected(draft);
  plan_pins(draft);
  BELLJAR_CHECK(plan_hidden(draft));
  BELLJAR_CHECK(check_volumes(draft));
  plan_caches(draft);
  show_home(draft);
  BELLJAR_CHECK(plan_devices(draft));
  BELLJAR_CHECK(plan_layers(draft));
  return std::move(draft.paths);
}

}  // namespace belljar::backend
