#include <sys/types.h>

#include <string>

#include "backend/backend.h"
#include "backend/paths/host.h"
#include "backend/paths/plan.h"
#include "backend/paths/plan_input.h"
#include "backend/paths/steps.h"
#include "backend/paths/view.h"
#include "belljar/policy.h"
#include "belljar/result.h"

namespace belljar::backend {
namespace {

void add_private(PathPlan& plan, const PlanInput& input, const std::string& path, mode_t mode, bool readonly = false) {
  if (path.empty() || path == "/" || is_under(path, input.place.workspace))
    return;  // inside the workspace it is as writable as that
  if (plan.is_private_dir(path) || (input.kind_of(path) != PathKind::kDirectory && !path.starts_with("/dev/"))) return;
  // An entry is about the sandbox's own, too: read-only, or closed.
  const Access asked = requested_access_at(input, path);
  if (asked == Access::kNone) plan.view.private_dirs.push_back({path, 0, true});
  else
    plan.view.private_dirs.push_back({path, readonly || asked == Access::kRead ? 0755U : mode, readonly || asked == Access::kRead});
}

}  // namespace

Result<PathPlan> plan_private(PathPlan plan, const PlanInput& input) {
  if (input.fs.tmp == Tmp::kPrivate && input.mounts == Mounts::kOwn) {
    // Excluded it is nobody's, not the host's: the key may only take away.
    add_private(plan, input, "/tmp", input.fs.exclude_slash_tmp ? 0755 : 01777, input.fs.exclude_slash_tmp);
    add_private(plan, input, "/var/tmp", 01777);
    add_private(plan, input, "/dev/shm", 01777);
    add_private(plan, input, input.place.runtime_dir, 0700);
    // A TMPDIR that holds the home or the workspace would cover them.
    const bool covers = is_under(input.place.home, input.place.tmpdir) || is_under(input.place.workspace, input.place.tmpdir);
    if (!input.fs.exclude_tmpdir_env_var && !covers) add_private(plan, input, input.place.tmpdir, 0700);
  }
  plan.view.private_bytes = input.fs.tmp_size.count;
  return plan;
}

Result<PathPlan> show_home(PathPlan plan, const PlanInput& input) {
  const std::string& home = input.place.home;
  if (!plan.view.whole_root) return plan;  // only what is named: its secrets have no mask there
  if (home.empty() || home == "/" || !plan.is_private(home) || plan.may_write(home) || plan.view.masks.contains(home) ||
      input.kind_of(home) != PathKind::kDirectory)
    return plan;
  show(plan, input, home, Access::kRead);
  return plan;
}

}  // namespace belljar::backend
