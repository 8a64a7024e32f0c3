// The order of the steps from a policy to a PathPlan.
//
// Each step asks only what earlier ones have settled, so the order is the algorithm:
//   - choose_root and plan_private come first: whether a path is the host's at all decides every later
//     question.
//   - What can be written comes before what can only be read: plan_readonly takes away below writable roots.
//   - plan_protected needs all writable roots; plan_pins needs all read-only paths, since it makes their
//     ancestors mount points and stops at the first ancestor that is read-only already.
//   - plan_hidden comes after what shows paths of the host, for it chooses by that between a mask, a cover
//     and a directory with nothing but the way to the writable part; check_volumes then finds rules that a
//     volume's other name would lead around.
//   - Caches, the home below a private directory, devices and a transaction's layers lie over the rest.
//
// A step never changes its input (PlanInput): what no mount can hold becomes a Gap, and the enforcement
// report says so.
#include "backend/paths/plan.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/paths/host.h"
#include "backend/paths/plan_input.h"
#include "backend/paths/steps.h"
#include "backend/paths/view.h"
#include "belljar/policy.h"
#include "belljar/result.h"

namespace belljar::backend {
namespace {

using Step = Result<PathPlan> (*)(PathPlan plan, const PlanInput& input);

// Order matters: each asks what is shown, writable or private so far. steps.h says what each does, and where.
constexpr Step kSteps[] = {
    choose_root, plan_private, plan_writable, plan_readable, plan_volumes, plan_readonly, plan_scratch, plan_protected,
    plan_pins,   plan_hidden,  check_volumes, plan_caches,   show_home,    plan_devices,  plan_layers,
};

}  // namespace

bool PathPlan::may_write(std::string_view path) const {
  return std::any_of(writable.begin(), writable.end(), [&](const std::string& root) { return is_under(path, root); });
}

bool PathPlan::is_private(std::string_view path) const {
  return std::any_of(view.private_dirs.begin(), view.private_dirs.end(),
                     [&](const PrivateDir& dir) { return is_under(path, dir.target); });
}

bool PathPlan::is_private_dir(std::string_view path) const {
  return std::any_of(view.private_dirs.begin(), view.private_dirs.end(), [&](const PrivateDir& dir) { return dir.target == path; });
}

std::vector<std::string> PathPlan::hidden_names() const {
  std::vector<std::string> names = view.hide_dirs;
  names.insert(names.end(), ways.begin(), ways.end());
  names.insert(names.end(), view.hide_files.begin(), view.hide_files.end());
  for (const auto& [folder, mask] : view.masks) {
    for (const std::string& name : mask.hidden) names.push_back(folder + "/" + name);
  }
  for (const Gap& gap : gaps) {
    if (gap.clause == "filesystem.hidden_absent") names.push_back(gap.where);
  }
  return names;
}

std::optional<Access> PathPlan::access_at(std::string_view path) const {
  if (is_kernels(path)) return std::nullopt;
  const auto holds = [&](const std::string& place) { return is_under(path, place); };
  const auto absent = [&](const Gap& gap) { return gap.clause == "filesystem.hidden_absent" && holds(gap.where); };
  if (is_hidden(view, path) || std::ranges::any_of(view.hide_files, holds) || std::ranges::any_of(gaps, absent))
    return Access::kNone;
  const Bind* bind = shown_by(path);
  const std::size_t shown = bind == nullptr ? 0 : bind->target.size();
  const PrivateDir* own = deepest_at(view.private_dirs, path);
  if (own != nullptr && own->target.size() > shown)
    return std::ranges::find(ways, own->target) != ways.end() ? std::optional(Access::kNone) : std::nullopt;
  if (std::ranges::any_of(view.caches, [&](const Cache& cache) { return cache.path.size() > shown && holds(cache.path); }))
    return std::nullopt;
  if (bind != nullptr) return bind->readonly ? Access::kRead : Access::kWrite;
  return view.whole_root ? Access::kRead : Access::kNone;
}

void PathPlan::add_gap(std::string clause, std::string what, std::string where) {
  gaps.push_back({.clause = std::move(clause), .what = std::move(what), .where = std::move(where)});
}

// Mounts are made at canonical places; a home below a link (/home -> /var/home) is common.
Workplace canonical_place(const Host& host, Workplace place) {
  for (std::string* path : {&place.workspace, &place.cwd, &place.home, &place.tmpdir, &place.runtime_dir}) {
    if (const auto real = path->empty() ? std::nullopt : host.canonical(*path)) *path = *real;
  }
  return place;
}

Result<PathPlan> plan_paths(const Host& host, const Policy& policy, const Workplace& place, Mounts mounts) {
  const PlanInput input(host, policy, place, mounts);
  PathPlan plan;
  for (const Step step : kSteps) plan = BELLJAR_TRY(step(std::move(plan), input));
  return plan;
}

}  // namespace belljar::backend
