#include <algorithm>
#include <iterator>
#include <optional>
#include <string>

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

namespace belljar::backend {
namespace {

// An entry of the workspace's file shows nothing: not through a link that the command made, not from below a private directory.
Result<void> check_opens_nothing(const PathPlan& plan, const PlanInput& input, const FsEntry& entry, const std::string& real) {
  if (entry.kind != RuleKind::kNarrowing) return {};
  Filesystem others;
  std::ranges::copy_if(input.fs.entries, std::back_inserter(others.entries),
                       [](const FsEntry& other) { return other.kind != RuleKind::kNarrowing; });
  const FsEntry* rule = find_rule(others, real);
  if (is_under(real, input.place.workspace) && (rule == nullptr || !is_under(rule->path, input.place.workspace))) return {};
  const bool open = rule == nullptr || rule->access != Access::kNone;
  const bool through = plan.is_private(real) && !input.in_shown_home(real) &&
                       (rule == nullptr || !plan.is_private(rule->path) || plan.is_private_dir(rule->path));
  if (open && !through) return {};
  return Error(Code::kPermissionDenied,
               format("{}: a project file may not make {} readable", to_string(entry.origin), quoted(real)))
      .reason(open ? "it lies below a directory that is private to the sandbox" : "nothing else makes it readable")
      .next("say it in your own policy file or on the command line");
}

// A mount holds what stands there, and not what the host puts in its place.
void keep_readonly(PathPlan& plan, const PlanInput& input, const FsEntry& entry, const std::string& path) {
  make_readonly(plan, input, path);
  if (std::ranges::find(plan.writable, path) == plan.writable.end()) plan.add_gap("filesystem.readonly_again", entry.path, path);
}

// Below a volume a name means what its source has there.
Result<void> keep_in_volume(PathPlan& plan, const PlanInput& input, const FsEntry& entry) {
  if (const Bind* bind = plan.shown_by(entry.path); bind == nullptr || bind->readonly) return {};
  const std::string there = plan.behind(entry.path);
  const auto real = input.host.canonical(there);
  if (!real) {
    plan.add_gap("filesystem.absent_readonly", entry.path, entry.path);
    return {};
  }
  if (*real != there)
    return Error(Code::kInvalidArgument, format("cannot keep {} read-only", quoted(entry.path)))
        .reason(format("there is a symbolic link in the volume, and it leads to {} (entry from {})", quoted(*real),
                       to_string(entry.origin)))
        .next("name what the link leads to, or make the volume read-only");
  keep_readonly(plan, input, entry, entry.path);
  return {};
}

// Unless its own rule hides it.
void show_hosts_root(PathPlan& plan, const PlanInput& input) {
  const FsEntry* const root = find_rule(input.fs, "/");
  if (root != nullptr && root->access == Access::kNone) return;
  for (const std::string& name : input.host.names_in("/")) {
    if (name == "." || name == "..") continue;
    const std::string path = "/" + name;
    if (mounted_under(path) && path != "/sys") continue;
    if (const auto text = input.host.link_text(path)) {
      plan.view.root_links.emplace_back(path, *text);
    } else if (!plan.is_private_dir(path) && !plan.bound(path)) {
      plan.readable.push_back(path);
      show(plan, input, path, Access::kRead);
    }
  }
}

void show_through_private(PathPlan& plan, const PlanInput& input, const std::string& path) {
  if (!plan.is_private(path) || plan.is_private_dir(path) || plan.bound(path)) return;
  show(plan, input, path, Access::kRead);
}

// The host's own links at the top that lead into what is shown: programs are asked for as /bin/sh, and name /lib64 for their
// loader.
void link_system_directories(PathPlan& plan, const PlanInput& input) {
  for (const char* name : {"/bin", "/lib", "/lib32", "/lib64", "/libx32", "/sbin"}) {
    const std::string path = name;
    const auto& links = plan.view.root_links;
    const auto real = input.kind_of(path) == PathKind::kSymlink ? input.host.canonical(path) : std::nullopt;
    const auto leads_into = [&](const std::string& shown) { return is_under(*real, shown); };
    const auto linked = [&](const auto& link) { return link.first == path; };
    const auto closed = [&](const FsEntry& entry) { return !entry.glob && entry.path == path && entry.access == Access::kNone; };
    if (real && std::ranges::any_of(plan.readable, leads_into) && std::ranges::none_of(links, linked) &&
        std::ranges::none_of(input.fs.entries, closed))
      plan.view.root_links.emplace_back(path, *real);
  }
}

}  // namespace

Result<PathPlan> plan_readable(PathPlan plan, const PlanInput& input) {
  if (plan.view.whole_root) return plan;
  if (needs_own_root(plan, input)) show_hosts_root(plan, input);
  const auto name_one = [&](const std::string& path, const FsEntry* entry) -> Result<void> {
    const auto real = input.host.canonical(path);
    if (!real) return {};
    if (entry != nullptr) BELLJAR_CHECK(check_opens_nothing(plan, input, *entry, *real));
    if (*real != path && input.kind_of(path) == PathKind::kSymlink) plan.view.root_links.emplace_back(path, *real);
    const bool shown =
        std::any_of(plan.readable.begin(), plan.readable.end(), [&](const std::string& other) { return is_under(*real, other); });
    if (shown || plan.may_write(*real)) return {};
    plan.readable.push_back(*real);
    show(plan, input, *real, Access::kRead);
    return {};
  };
  for (const FsEntry& entry : input.fs.entries) {
    if (!entry.glob && entry.access == Access::kRead && entry.path != "/") BELLJAR_CHECK(name_one(entry.path, &entry));
  }
  if (!plan.may_write(input.place.workspace)) BELLJAR_CHECK(name_one(input.place.workspace, nullptr));
  link_system_directories(plan, input);
  return plan;
}

Result<PathPlan> plan_readonly(PathPlan plan, const PlanInput& input) {
  for (const FsEntry& entry : input.fs.entries) {
    if (entry.glob) {
      plan.gaps.push_back({.clause = "filesystem.globs",
                           .what = format("{} ({})", entry.path, to_string(entry.access)),
                           .where = {},
                           .access = entry.access});
      continue;
    }
    if (entry.access != Access::kRead) continue;
    if (input.remapped_volume_at(entry.path) != nullptr) {
      BELLJAR_CHECK(keep_in_volume(plan, input, entry));
      continue;
    }
    const auto real = input.host.canonical(entry.path);
    if (!real) {
      const std::string where = where_made(input.host, entry.path);
      if (plan.may_write(entry.path)) plan.add_gap("filesystem.absent_readonly", entry.path, entry.path);
      if (where != entry.path && plan.may_write(where)) plan.add_gap("filesystem.absent_readonly", entry.path, where);
      continue;
    }
    BELLJAR_CHECK(check_opens_nothing(plan, input, entry, *real));
    const Bind* bind = plan.shown_by(*real);
    if (plan.may_write(*real) || (bind != nullptr && !bind->readonly)) keep_readonly(plan, input, entry, *real);
    else show_through_private(plan, input, *real);  // --read /tmp/x
  }
  // A workspace below /tmp that nobody made writable.
  if (const FsEntry* rule = find_rule(input.fs, input.place.workspace); rule == nullptr || rule->access != Access::kNone) {
    if (!plan.may_write(input.place.workspace)) show_through_private(plan, input, input.place.workspace);
  }
  return plan;
}

}  // namespace belljar::backend
