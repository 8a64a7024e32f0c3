#include "backend/paths/plan_input.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "backend/backend.h"
#include "backend/paths/host.h"
#include "backend/paths/plan.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "policy/permit.h"

namespace belljar::backend {

PlanInput::PlanInput(const Host& the_host, const Policy& the_policy, const Workplace& the_place, Mounts the_mounts)
    : host(the_host), policy(the_policy), fs(the_policy.filesystem), place(the_place), mounts(the_mounts) {
  for (const Volume& volume : fs.volumes) {
    auto source = host.canonical(volume.source);
    if (source && *source != volume.target) remapped_volumes.emplace_back(*std::move(source), &volume);
  }
}

const Volume* PlanInput::remapped_volume_at(std::string_view path) const {
  const auto found = std::ranges::find_if(remapped_volumes, [&](const auto& one) { return is_under(path, one.second->target); });
  return found == remapped_volumes.end() ? nullptr : found->second;
}

Access requested_access_at(const PlanInput& input, std::string_view path) {
  const FsEntry* rule = find_rule(input.fs, path);
  return rule != nullptr && rule->path == path ? rule->access : Access::kWrite;
}

bool out_of_sight(const PathPlan& plan, const PlanInput& input, const std::string& path) {
  return plan.is_private(path) && !input.in_shown_home(path) && !plan.bound(path);
}

void show(PathPlan& plan, const PlanInput& input, const std::string& path, Access access) {
  const bool directory = input.kind_of(path) == PathKind::kDirectory;
  plan.view.binds.push_back({.source = path, .target = path, .readonly = access != Access::kWrite, .directory = directory});
}

void make_readonly(PathPlan& plan, const PlanInput& input, const std::string& path) {
  if (std::ranges::find(plan.readonly, path) != plan.readonly.end() ||
      std::ranges::find(plan.writable, path) != plan.writable.end())
    return;
  plan.readonly.push_back(path);
  std::string source = plan.behind(path);
  const bool directory = input.kind_of(source) == PathKind::kDirectory;
  plan.view.binds.push_back({.source = std::move(source), .target = path, .readonly = true, .directory = directory});
}

bool leaves_way(const PlanInput& input, std::string_view around, std::string_view root) {
  return root != around && is_under(root, around) && !is_under(input.place.home, around) &&
         input.remapped_volume_at(root) == nullptr;
}

Error inside_hidden(const FsEntry& entry, const std::string& hidden, HiddenBy by) {
  const bool writes = entry.access == Access::kWrite;
  const bool built_in = by == HiddenBy::kDefault;
  return Error(Code::kInvalidArgument,
               format("cannot make {} {} inside hidden {}", quoted(entry.path), writes ? "writable" : "readable", quoted(hidden)))
      .reason(format("{} (entry from {})",
                     built_in ? "it is one of the default secrets (filesystem.secrets, built-in), which are shown as a whole or not"
                              : "nothing in it can be shown alone",
                     to_string(entry.origin)))
      .next(built_in ? format("{} {} opens all of it; or put a copy of the one file into the workspace",
                              writes ? "--write" : "--read", policy::shell_word(hidden))
                     : "hide the other parts of that directory one by one, or drop one of the two entries");
}

}  // namespace belljar::backend
