#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "backend/backend.h"
#include "backend/paths/host.h"
#include "backend/paths/plan.h"
#include "backend/paths/plan_input.h"
#include "backend/paths/steps.h"
#include "backend/paths/view.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "policy/paths.h"

namespace belljar::backend {
namespace {

// Could the pattern mean something at or below `source` that it does not mean below another directory? `**/NAME` does not, unless
// it covers `source` itself.
bool glob_meets(const std::string& glob, const std::string& source) {
  if (policy::glob_covers(glob, source)) return true;
  const std::size_t start = glob.find("**/") == 0 ? 3 : glob.find("/**/") == 0 ? 4 : std::string::npos;
  if (start != std::string::npos && glob.find('/', start) == std::string::npos) return false;
  const std::string fixed = parent_of(glob.substr(0, glob.find_first_of("*?[") + 1));
  return is_under(fixed, source) || is_under(source, fixed);
}

Error leads_around(const Volume& volume, std::string_view kept, const std::string& path) {
  return Error(Code::kInvalidArgument, format("cannot mount volume {} at {}", quoted(volume.source), quoted(volume.target)))
      .reason(
          format("the rule that keeps {} {} would not hold there (volume from {})", quoted(path), kept, to_string(volume.origin)))
      .next("name a directory beside it, or mount it at its own path");
}

// The nearest directory above that the host has.
std::string nearest_above(const PlanInput& input, const std::string& path) {
  std::string up = parent_of(path);
  while (up != "/" && input.kind_of(up) == PathKind::kAbsent) up = parent_of(up);
  return up;
}

bool is_missing(const PathPlan& plan, const PlanInput& input, const Volume& volume) {
  return input.kind_of(volume.target) == PathKind::kAbsent && !is_under(volume.target, input.place.workspace) &&
         !plan.is_private(volume.target);
}

// In a mask of a directory that is read-only: a name that is there inside alone.
void make_name(PathPlan& plan, const PlanInput& input, const Volume& volume) {
  const std::string& home = input.place.home;
  std::string folder = nearest_above(input, volume.target);
  if (!plan.view.whole_root || folder == "/" || !input.place.overlays || plan.may_write(folder) || mounted_under(folder) ||
      input.kind_of(folder) != PathKind::kDirectory || input.host.canonical(folder) != folder)
    return;
  if (!home.empty() && home != "/" && is_under(folder, home)) folder = home;
  plan.view.masks[folder].ghosts.push_back(volume.target.substr(folder.size() + 1));
}

Result<void> check_target(const PathPlan& plan, const PlanInput& input, const Volume& volume, const std::string& source) {
  const std::string& target = volume.target;
  const auto refuse = [&](std::string_view why, std::string_view next = "name another target") {
    return Error(Code::kInvalidArgument, format("cannot mount volume {} at {}", quoted(volume.source), quoted(target)))
        .reason(format("{} ({})", why, to_string(volume.origin)))
        .next(std::string(next));
  };
  if (plan.is_private_dir(target))
    return refuse("the sandbox's own is there",
                  format("name a place below it, such as {}/data, or write `filesystem.temp_dir = \"{}\"` in place of the volume: "
                         "it is writable and $TMPDIR then",
                         escaped(target), escaped(volume.source)));
  if (target == "/") return refuse("the sandbox's own is there");
  if (is_kernels(target)) return refuse("it belongs to the kernel's files");
  if (target != input.place.workspace && is_under(input.place.workspace, target)) return refuse("the workspace lies below it");
  const PathKind there = input.kind_of(target), kind = input.kind_of(source);
  if (there != PathKind::kAbsent && there != PathKind::kSymlink &&
      (there == PathKind::kDirectory) != (kind == PathKind::kDirectory) && !out_of_sight(plan, input, target))
    return refuse(kind == PathKind::kDirectory ? "what is there is no directory, and the volume is one"
                                               : "there is a directory, and the volume is none");
  return {};
}

}  // namespace

bool needs_own_root(const PathPlan& plan, const PlanInput& input) {
  return input.policy.mode != Mode::kDangerFullAccess && input.policy.mode != Mode::kExternalSandbox &&
         std::ranges::any_of(input.fs.volumes, [&](const Volume& volume) {
           return is_missing(plan, input, volume) && nearest_above(input, volume.target) == "/";
         });
}

Result<PathPlan> choose_root(PathPlan plan, const PlanInput& input) {
  const FsEntry* root = find_rule(input.fs, "/");
  plan.view.whole_root = (root == nullptr || root->access != Access::kNone) && !needs_own_root(plan, input);
  return plan;
}

Result<PathPlan> plan_volumes(PathPlan plan, const PlanInput& input) {
  for (const Volume& volume : input.fs.volumes) {
    const auto source = input.host.canonical(volume.source);
    if (!source)
      return Error(Code::kInvalidArgument, format("cannot mount volume {}", quoted(volume.source)))
          .reason(format("it does not exist ({})", to_string(volume.origin)))
          .next("create it first");
    BELLJAR_CHECK(check_target(plan, input, volume, *source));
    if (is_missing(plan, input, volume) && input.kind_of(*source) == PathKind::kDirectory) make_name(plan, input, volume);
    plan.view.binds.push_back({.source = *source,
                               .target = volume.target,
                               .readonly = volume.readonly,
                               .directory = input.kind_of(*source) == PathKind::kDirectory});
    if (!volume.readonly) plan.writable.push_back(volume.target);
  }
  return plan;
}

Result<PathPlan> check_volumes(PathPlan plan, const PlanInput& input) {
  for (const auto& [source, volume] : input.remapped_volumes) {
    for (const std::string& path : plan.beside_volumes) {
      if (is_under(path, source) || is_under(source, path)) return leads_around(*volume, "hidden", path);
    }
    for (const FsEntry& entry : input.fs.entries) {
      if (entry.access == Access::kWrite || entry.path == "/" || (entry.access == Access::kRead && volume->readonly)) continue;
      const bool within =
          entry.glob ? glob_meets(entry.path, source) : is_under(entry.path, source) || find_rule(input.fs, source) == &entry;
      if (within) return leads_around(*volume, entry.access == Access::kNone ? "hidden" : "read-only", entry.path);
    }
  }
  return plan;
}

}  // namespace belljar::backend
