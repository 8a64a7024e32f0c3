#include "backend/paths/plan.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "backend/backend.h"
#include "backend/paths/given.h"
#include "backend/paths/host.h"
#include "backend/paths/steps.h"
#include "backend/paths/view.h"
#include "belljar/policy.h"
#include "belljar/result.h"

namespace belljar::backend {
namespace {

using Step = Result<PathPlan> (*)(PathPlan plan, const Given& given);

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

const Bind* PathPlan::shown_by(std::string_view path) const {
  const Bind* nearest = nullptr;
  for (const Bind& bind : view.binds) {
    if (is_under(path, bind.target) && (nearest == nullptr || bind.target.size() >= nearest->target.size())) nearest = &bind;
  }
  return nearest;
}

std::string PathPlan::behind(const std::string& path) const {
  const Bind* bind = shown_by(path);
  if (bind == nullptr || bind->source == bind->target) return path;
  return path == bind->target ? bind->source : (bind->source == "/" ? "" : bind->source) + path.substr(bind->target.size());
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

Result<PathPlan> plan_paths(const Host& host, const Policy& policy, const Workplace& place) {
  const Given given(host, policy, place);
  PathPlan plan;
  for (const Step step : kSteps) plan = BELLJAR_TRY(step(std::move(plan), given));
  return plan;
}

}  // namespace belljar::backend
