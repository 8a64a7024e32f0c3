#include "policy/protected.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

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

// "gitdir: <path>" of a `.git` file, gitrepository-layout(5).
std::string pointer_in(std::string_view text, std::string_view key) {
  if (!text.starts_with(key)) return "";
  text.remove_prefix(key.size());
  const std::size_t end = text.find('\n');
  return std::string(text.substr(0, end));
}

// The name here of the host's `real`, which what is shown at `path` leads to.
std::string shown_as(const PathPlan& plan, const std::string& real, std::string_view path) {
  const Bind* bind = plan.shown_by(path);
  return bind != nullptr && is_under(real, bind->source) ? bind->target + real.substr(bind->source.size()) : real;
}

// A repository may name a common one (worktrees), which is protected where it lies.
void protect_common(PathPlan& plan, const PlanInput& input, const std::string& gitdir) {
  const auto text = input.host.read_small(gitdir + "/commondir");
  if (!text) return;
  std::string target = pointer_in(*text, "");
  if (target.empty()) return;
  if (target.front() != '/') target = gitdir + "/" + target;
  const auto real = input.host.canonical(target);
  if (real && plan.may_write(*real)) make_readonly(plan, input, *real);
}

// A `.git` file names its repository.
void protect_pointed(PathPlan& plan, const PlanInput& input, const std::string& file) {
  const auto text = input.host.read_small(file);
  if (!text) return;
  std::string target = pointer_in(*text, "gitdir: ");
  if (target.empty()) return;
  if (target.front() != '/') target = parent_of(file) + "/" + target;
  const auto real = input.host.canonical(target);
  if (!real) return;
  if (plan.may_write(*real)) make_readonly(plan, input, *real);
  protect_common(plan, input, *real);
}

// `there`: the host's name of it.
void protect_existing(PathPlan& plan, const PlanInput& input, const std::string& path, const std::string& there, PathKind kind,
                      bool git) {
  // A link, itself or on the way (`.github` -> docs): what it leads to is kept where that is writable.
  if (const auto real = input.host.canonical(there); real != there) {
    plan.add_gap("protect.links", path);
    const std::string inside = real ? shown_as(plan, *real, path) : "";
    if (!inside.empty() && plan.may_write(inside)) make_readonly(plan, input, inside);
    return;
  }
  make_readonly(plan, input, path);
  ++plan.protected_dirs;
  if (kind != PathKind::kDirectory) plan.add_gap("protect.files", path);
  if (!git) return;
  if (kind == PathKind::kFile) protect_pointed(plan, input, there);
  else protect_common(plan, input, there);
}

void protect_name(PathPlan& plan, const PlanInput& input, const std::string& root, std::string_view name, bool& absent) {
  const std::string path = root + "/" + std::string(name);
  const std::string there = plan.behind(path);
  const PathKind kind = input.kind_of(there);
  if (kind == PathKind::kAbsent) absent = true;
  else protect_existing(plan, input, path, there, kind, name == ".git");
}

// What is there of the names with a `*`; more may come, as with any protected name. Each folder is listed once.
void protect_patterns(PathPlan& plan, const PlanInput& input, const std::string& root) {
  std::map<std::string, std::vector<std::string_view>> patterns;  // of the last component, by the folder below the root
  for (const policy::ProtectedName& one : policy::protected_names()) {
    const std::size_t below = one.name.rfind('/') + 1;
    if (one.name.find('*') != std::string_view::npos)
      patterns[std::string(one.name.substr(0, below))].push_back(one.name.substr(below));
  }
  for (const auto& [prefix, list] : patterns) {
    const std::string folder = plan.behind(prefix.empty() ? root : root + "/" + prefix.substr(0, prefix.size() - 1));
    if (input.kind_of(folder) != PathKind::kDirectory) continue;
    for (const std::string& name : input.host.names_in(folder)) {
      const auto covers = [&](std::string_view pattern) { return policy::folds_to_pattern(name, pattern); };
      bool absent = false;
      if (std::ranges::any_of(list, covers)) protect_name(plan, input, root, prefix + name, absent);
    }
  }
}

}  // namespace

Result<PathPlan> plan_protected(PathPlan plan, const PlanInput& input) {
  if (input.fs.protect == Protect::kNone) return plan;
  const std::vector<std::string> roots = plan.writable;
  bool absent = false;
  for (const std::string& root : roots) {
    if (input.kind_of(root) != PathKind::kDirectory) continue;
    if (input.fs.protect == Protect::kAll || !input.place.listener || input.policy.allow_nested_userns)
      protect_name(plan, input, root, ".git", absent);
    for (const policy::ProtectedName& one : policy::protected_names()) {
      if (one.name.find('*') == std::string_view::npos) protect_name(plan, input, root, one.name, absent);
    }
    protect_patterns(plan, input, root);
  }
  if (absent) plan.add_gap("protect.absent", "names that do not exist yet at a writable root");
  return plan;
}

Result<PathPlan> plan_pins(PathPlan plan, const PlanInput&) {
  for (const std::string& path : plan.readonly) {
    for (std::string up = parent_of(path); up != "/"; up = parent_of(up)) {
      const Bind* bind = plan.shown_by(up);
      if (bind == nullptr || bind->readonly) break;
      if (bind->target == up) continue;  // a mount point as it is; a writable directory may lie above it
      plan.pinned.push_back(up);
      plan.view.binds.push_back({.source = plan.behind(up), .target = up, .readonly = false});
    }
  }
  return plan;
}

}  // namespace belljar::backend
