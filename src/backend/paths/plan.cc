#include "backend/paths/plan.h"

#include <optional>
#include <string>
#include <utility>

#include "backend/backend.h"
#include "backend/paths/draft.h"
#include "backend/paths/host.h"
#include "backend/paths/steps.h"
#include "belljar/policy.h"
#include "belljar/result.h"

namespace belljar::backend {

// Mounts are made at canonical places; a home below a link (/home -> /var/home) is common.
Workplace canonical_place(const Host& host, Workplace place) {
  for (std::string* path : {&place.workspace, &place.cwd, &place.home, &place.tmpdir, &place.runtime_dir}) {
    if (const auto real = path->empty() ? std::nullopt : host.canonical(*path)) *path = *real;
  }
  return place;
}

Result<PathPlan> plan_paths(const Host& host, const Policy& policy, const Workplace& place) {
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
