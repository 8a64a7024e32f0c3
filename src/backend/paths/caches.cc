#include <algorithm>
#include <string>
#include <utility>

#include "backend/backend.h"
#include "backend/paths/host.h"
#include "backend/paths/plan.h"
#include "backend/paths/plan_input.h"
#include "backend/paths/steps.h"
#include "backend/paths/view.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "policy/defaults.h"

namespace belljar::backend {
namespace {

bool may_be_layered(const PathPlan& plan, const PlanInput& input, const std::string& path) {
  if (input.mounts == Mounts::kNone || is_under(input.place.workspace, path) || !plan.view.whole_root) return false;
  if (std::ranges::any_of(input.fs.volumes, [&](const Volume& volume) { return is_under(path, volume.target); })) return false;
  // The home as a whole would be shown around its own rules, and below a private directory nothing is the host's.
  return !is_under(input.place.home, path) && !out_of_sight(plan, input, path);
}

bool may_be_cached(const PathPlan& plan, const PlanInput& input, const std::string& path) {
  if (plan.may_write(path) || !may_be_layered(plan, input, path)) return false;
  const FsEntry* rule = find_rule(input.fs, path);
  const bool narrowed =
      rule != nullptr && (rule->path == path || is_under(rule->path, input.place.home)) && rule->access != Access::kWrite;
  return !narrowed;
}

// Absent ones would cost a mount each for programs that never run: only the two that any tool may want.
bool may_be_made(const PathPlan& plan, const PlanInput& input, const std::string& path) {
  const std::string& home = input.place.home;
  const std::string parent = parent_of(path);
  const bool common = path == home + "/.cache" || path == home + "/.npm";
  return common && input.kind_of(path) == PathKind::kAbsent && is_under(parent, home) &&
         input.kind_of(parent) == PathKind::kDirectory && !plan.may_write(home);
}

// In the mask of the home, for a layer over a directory that the host does not have.
void add_absent(PathPlan& plan, const PlanInput& input, Cache cache) {
  const std::string& home = input.place.home;
  plan.view.masks[home].ghosts.push_back(cache.path.substr(home.size() + 1));
  cache.exists = false;
  plan.view.caches.push_back(std::move(cache));
}

void add_cache(PathPlan& plan, const PlanInput& input, const std::string& path) {
  if (!may_be_cached(plan, input, path)) return;
  if (input.kind_of(path) == PathKind::kDirectory) {
    if (input.host.canonical(path) == path) plan.view.caches.push_back({.path = path});
    return;
  }
  if (may_be_made(plan, input, path)) add_absent(plan, input, {.path = path});
}

// No link inside something writable leads there, which a command could have pointed elsewhere.
bool is_plain_way(const PathPlan& plan, const PlanInput& input, const std::string& path) {
  for (std::string at = path; at != "/"; at = parent_of(at)) {
    if (input.kind_of(at) == PathKind::kSymlink && plan.may_write(at)) return false;
  }
  return true;
}

// Below the home, and no link on the way.
bool may_be_ghost(const PathPlan& plan, const PlanInput& input, const std::string& path) {
  const std::string& home = input.place.home;
  if (home.empty() || home == "/" || !is_under(path, home) || plan.may_write(path) || input.kind_of(home) != PathKind::kDirectory)
    return false;
  std::string up = parent_of(path);
  while (up != home && input.kind_of(up) == PathKind::kAbsent) up = parent_of(up);
  return input.kind_of(up) == PathKind::kDirectory && input.host.canonical(up) == up;
}

void add_scratch(PathPlan& plan, const PlanInput& input, const std::string& path) {
  // An entry for this very directory says more; a file of the workspace may not let writes through.
  if (const FsEntry* rule = find_rule(input.fs, path);
      rule != nullptr && rule->path == path && !(rule->kind == RuleKind::kNarrowing && rule->access == Access::kWrite))
    return;
  const auto real = input.host.canonical(path);
  if (!real) {
    const std::string where = where_made(input.host, path);
    if (where == path && input.place.overlays && may_be_layered(plan, input, path) && may_be_ghost(plan, input, path))
      return add_absent(plan, input, {.path = path, .scratch = true});
    if (plan.may_write(where)) plan.add_gap("filesystem.absent_readonly", path, where);
    return plan.add_gap("filesystem.scratch", path);
  }
  const bool writable = plan.may_write(*real);
  if (input.place.overlays && input.kind_of(*real) == PathKind::kDirectory && may_be_layered(plan, input, *real) &&
      is_plain_way(plan, input, path))
    return plan.view.caches.push_back({.path = *real, .scratch = true, .required = writable});
  if (writable) make_readonly(plan, input, *real);
  plan.add_gap("filesystem.scratch", path);
}

// A layer is writable all over.
void keep_readonly_in_caches(PathPlan& plan, const PlanInput& input) {
  const auto in_cache = [&](const std::string& path) {
    return std::ranges::any_of(plan.view.caches, [&](const Cache& cache) { return is_under(path, cache.path); });
  };
  for (const FsEntry& entry : input.fs.entries) {
    if (entry.glob || entry.access != Access::kRead) continue;
    const auto real = input.host.canonical(entry.path);
    if (!real || !in_cache(*real) || plan.bound(*real)) continue;
    show(plan, input, *real, Access::kRead);
  }
}

}  // namespace

Result<PathPlan> plan_scratch(PathPlan plan, const PlanInput& input) {
  for (const std::string& path : input.fs.scratch) add_scratch(plan, input, path);
  return plan;
}

Result<PathPlan> plan_caches(PathPlan plan, const PlanInput& input) {
  const std::string& home = input.place.home;
  if (input.fs.caches != Caches::kOff && input.place.overlays && !home.empty() && home != "/" &&
      input.kind_of(home) == PathKind::kDirectory) {
    for (const std::string& path : input.fs.cache_dirs.empty() ? policy::default_cache_dirs(home) : input.fs.cache_dirs)
      add_cache(plan, input, path);
  }
  keep_readonly_in_caches(plan, input);
  return plan;
}

}  // namespace belljar::backend
