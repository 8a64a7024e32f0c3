#include <algorithm>
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
#include "policy/profiles.h"

namespace belljar::backend {
namespace {

// A write entry that crosses a link inside something writable could be re-pointed by an earlier command: refused, not followed.
Result<std::string> settle(const PathPlan& plan, const PlanInput& input, const std::string& path, const std::string& rule) {
  const auto real = input.host.canonical(path);
  if (!real) {
    return Error(Code::kInvalidArgument, format("cannot make {} writable", quoted(path)))
        .reason(format("it does not exist ({})", rule))
        .next("create it first, or drop the entry");
  }
  if (*real == path) return *real;
  std::string at = path;
  while (at != "/") {
    if (input.kind_of(at) == PathKind::kSymlink && (is_under(at, input.place.workspace) || plan.may_write(at))) {
      return Error(Code::kPermissionDenied, format("cannot make {} writable", quoted(path)))
          .reason(format("{} is a symbolic link inside a writable directory, so a command could point it anywhere", quoted(at)))
          .next(format("name its target {} if you mean that", quoted(*real)));
    }
    at = parent_of(at);
  }
  return *real;
}

// A shipped profile lists what a machine may have: what this one lacks is left out by name. A list of one's own means what it
// says.
bool left_out(PathPlan& plan, const PlanInput& input, const FsEntry& entry) {
  const bool shipped = entry.origin.file == entry.origin.layer + ".toml" &&
                       std::ranges::find(policy::embedded_profiles(), entry.origin.layer, &policy::EmbeddedProfile::name) !=
                           policy::embedded_profiles().end();
  if (!shipped || input.host.canonical(entry.path)) return false;
  plan.add_gap("filesystem.absent_writable", entry.path);
  return true;
}

// What a file of the workspace says may not make something persist that others drop.
bool dropped_anyway(const PlanInput& input, const FsEntry& entry) {
  return entry.kind == RuleKind::kNarrowing &&
         std::ranges::any_of(input.fs.scratch, [&](const std::string& scratch) { return is_under(entry.path, scratch); });
}

// What Belljar opens by itself: not where another sandbox works, of which this one is to see nothing; not beside the layers of a
// transaction, which could not take it back; not through a link.
bool not_opened(const PlanInput& input, const FsEntry& entry) {
  if (entry.kind != RuleKind::kImplied) return false;
  if (input.place.layers || input.host.canonical(entry.path) != entry.path) return true;
  return input.place.siblings &&
         std::ranges::any_of(input.place.siblings->hidden, [&](const std::string& other) { return is_under(entry.path, other); });
}

// /tmp/x that is not there: the private /tmp is writable as it is. A home or a workspace below /tmp is the host's.
bool private_anyway(const PathPlan& plan, const PlanInput& input, const std::string& path) {
  if (input.kind_of(path) != PathKind::kAbsent || input.in_shown_home(path) || is_under(path, input.place.workspace)) return false;
  return std::ranges::any_of(plan.view.private_dirs,
                             [&](const PrivateDir& dir) { return !dir.readonly && is_under(path, dir.target); });
}

Result<void> add_writable(PathPlan& plan, const PlanInput& input, const std::string& path) {
  if (mounted_under(path)) {
    return Error(Code::kInvalidArgument, format("cannot make {} writable", quoted(path)))
        .reason("it is a kernel file system, not a place for files")
        .next("use --device for device nodes");
  }
  if (std::find(plan.writable.begin(), plan.writable.end(), path) != plan.writable.end()) return {};
  plan.writable.push_back(path);
  show(plan, input, path, Access::kWrite);
  return {};
}

// tmp = "shared": the host's own.
Result<void> share_temp(PathPlan& plan, const PlanInput& input) {
  for (const char* path : {"/tmp", "/var/tmp", "/dev/shm"}) {
    if (input.kind_of(path) != PathKind::kDirectory) continue;
    // The stage lies over it meanwhile (tree_stage.cc): what is not writable is put back read-only.
    if ((input.fs.exclude_slash_tmp && std::string_view(path) == "/tmp") || requested_access_at(input, path) == Access::kRead)
      plan.view.binds.push_back({.source = path, .target = path, .readonly = true, .lend = false});
    else if (std::string_view(path).starts_with("/dev/")) show(plan, input, path, Access::kWrite);
    else BELLJAR_CHECK(add_writable(plan, input, path));
  }
  const std::string& tmpdir = input.place.tmpdir;
  if (!input.fs.exclude_tmpdir_env_var && !tmpdir.empty() && input.kind_of(tmpdir) == PathKind::kDirectory &&
      !plan.may_write(tmpdir) && requested_access_at(input, tmpdir) != Access::kRead)
    BELLJAR_CHECK(add_writable(plan, input, tmpdir));
  return {};
}

// The entry, other than that for "/", that closes a directory above `path` to all that is in it; the uppermost. One in a file of
// the workspace leaves no way.
const FsEntry* closing_entry(const PlanInput& input, const std::string& path) {
  const FsEntry* found = nullptr;
  for (std::string up = parent_of(path);; up = parent_of(up)) {
    const FsEntry* rule = find_rule(input.fs, up);
    if (rule != nullptr && rule->access == Access::kNone && rule->path != "/" &&
        (rule->kind == RuleKind::kNarrowing || !leaves_way(input, rule->path, path)))
      found = rule;
    if (up == "/") return found;
  }
}

Result<void> add_entry(PathPlan& plan, const PlanInput& input, const FsEntry& entry) {
  const std::string real = BELLJAR_TRY(settle(plan, input, entry.path, to_string(entry.origin)));
  if (std::ranges::any_of(plan.view.private_dirs, [&](const PrivateDir& dir) { return dir.readonly && dir.target == real; }))
    return Error(Code::kInvalidArgument, format("cannot make {} writable", quoted(entry.path)))
        .reason("filesystem.exclude_slash_tmp says that it is not")
        .next("drop the key, or the entry");
  if (const FsEntry* hidden = closing_entry(input, real); hidden != nullptr)
    return inside_hidden(entry, hidden->path, hidden->kind == RuleKind::kDefaultSecret ? HiddenBy::kDefault : HiddenBy::kEntry);
  return add_writable(plan, input, real);
}

// One of the sandbox's own where it is to go with it, and below a private directory where the host has none.
Result<void> plan_temp_dir(PathPlan& plan, const PlanInput& input) {
  constexpr std::string_view kKey = "filesystem.temp_dir";
  const std::string& path = *input.fs.temp_dir;
  const bool below_private = private_anyway(plan, input, path);
  const std::string real = below_private ? path : BELLJAR_TRY(settle(plan, input, path, std::string(kKey)));
  // A directory that holds the home is closed to all of it.
  const FsEntry asked{.path = path, .access = Access::kWrite, .origin = {.layer = std::string(kKey), .file = "", .line = 0}};
  if (const FsEntry* hidden = closing_entry(input, real); hidden != nullptr && is_under(input.place.home, hidden->path))
    return inside_hidden(asked, hidden->path, HiddenBy::kEntry);
  if (!below_private && !input.fs.clean_temp_dir) return add_writable(plan, input, real);
  if (is_under(input.place.workspace, real) || is_under(input.place.home, real) || mounted_under(real))
    return Error(Code::kInvalidArgument, format("cannot give the sandbox a {} of its own", quoted(path)))
        .reason(format("{} lies in it ({}, filesystem.clean_temp_dir)",
                       mounted_under(real) ? "what is the kernel's" : "the workspace or the home", kKey))
        .next("name another directory");
  if (!plan.is_private_dir(real)) plan.view.private_dirs.push_back({real, 0700, false});
  return {};
}

}  // namespace

Result<PathPlan> plan_writable(PathPlan plan, const PlanInput& input) {
  if (input.policy.mode == Mode::kWorkspaceWrite) {
    const FsEntry* rule = find_rule(input.fs, input.place.workspace);
    // An entry for the workspace itself may narrow it.
    if (rule == nullptr || rule->path != input.place.workspace || rule->access == Access::kWrite)
      BELLJAR_CHECK(add_writable(plan, input, input.place.workspace));
  }
  if (input.fs.tmp == Tmp::kShared) BELLJAR_CHECK(share_temp(plan, input));
  if (input.fs.temp_dir) BELLJAR_CHECK(plan_temp_dir(plan, input));
  for (const FsEntry& entry : input.fs.entries) {
    if (entry.glob || entry.access != Access::kWrite || private_anyway(plan, input, entry.path) || dropped_anyway(input, entry) ||
        not_opened(input, entry) || left_out(plan, input, entry))
      continue;
    BELLJAR_CHECK(add_entry(plan, input, entry));
  }
  std::sort(plan.writable.begin(), plan.writable.end(), [](const auto& a, const auto& b) { return depth_of(a) < depth_of(b); });
  return plan;
}

}  // namespace belljar::backend
