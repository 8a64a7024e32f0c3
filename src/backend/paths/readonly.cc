#include <algorithm>
#include <iterator>
#include <string>

#include "backend/backend.h"
#include "backend/paths/draft.h"
#include "backend/paths/host.h"
#include "backend/paths/steps.h"
#include "backend/paths/view.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"

namespace belljar::backend {
namespace {

// An entry of the workspace's file shows nothing: not through a link that the command made, not from below a private directory.
Result<void> check_opens_nothing(const ViewDraft& draft, const FsEntry& entry, const std::string& real) {
  if (entry.kind != RuleKind::kNarrowing) return {};
  Filesystem others;
  std::ranges::copy_if(draft.fs.entries, std::back_inserter(others.entries),
                       [](const FsEntry& other) { return other.kind != RuleKind::kNarrowing; });
  const FsEntry* rule = find_rule(others, real);
  if (is_under(real, draft.place.workspace) && (rule == nullptr || !is_under(rule->path, draft.place.workspace))) return {};
  const bool open = rule == nullptr || rule->access != Access::kNone;
  const bool through = draft.is_private(real) && !draft.in_shown_home(real) &&
                       (rule == nullptr || !draft.is_private(rule->path) || draft.is_private_dir(rule->path));
  if (open && !through) return {};
  return Error(Code::kPermissionDenied,
               format("{}: a project file may not make {} readable", to_string(entry.origin), quoted(real)))
      .reason(open ? "it lies below a directory that is private to the sandbox" : "nothing else makes it readable")
      .next("say it in your own policy file or on the command line");
}

// A mount holds what stands there, and not what the host puts in its place.
void keep_readonly(ViewDraft& draft, const FsEntry& entry, const std::string& path) {
  draft.add_readonly(path);
  if (std::ranges::find(draft.paths.writable, path) == draft.paths.writable.end())
    draft.add_gap("filesystem.readonly_again", entry.path, path);
}

// Below a volume a name means what its source has there.
Result<void> keep_in_volume(ViewDraft& draft, const FsEntry& entry) {
  if (const Bind* bind = draft.shown_by(entry.path); bind == nullptr || bind->readonly) return {};
  const std::string there = draft.behind(entry.path);
  const auto real = draft.host.canonical(there);
  if (!real) {
    draft.add_gap("filesystem.absent_readonly", entry.path, entry.path);
    return {};
  }
  if (*real != there)
    return Error(Code::kInvalidArgument, format("cannot keep {} read-only", quoted(entry.path)))
        .reason(format("there is a symbolic link in the volume, and it leads to {} (entry from {})", quoted(*real),
                       to_string(entry.origin)))
        .next("name what the link leads to, or make the volume read-only");
  keep_readonly(draft, entry, entry.path);
  return {};
}

// Unless its own rule hides it.
void show_hosts_root(ViewDraft& draft) {
  const FsEntry* const root = find_rule(draft.fs, "/");
  if (root != nullptr && root->access == Access::kNone) return;
  for (const std::string& name : draft.host.names_in("/")) {
    if (name == "." || name == "..") continue;
    const std::string path = "/" + name;
    if (mounted_under(path) && path != "/sys") continue;
    if (const auto text = draft.host.link_text(path)) {
      draft.view().root_links.emplace_back(path, *text);
    } else if (!draft.is_private_dir(path) && !draft.bound(path)) {
      draft.paths.readable.push_back(path);
      draft.show(path, Access::kRead);
    }
  }
}

void show_through_private(ViewDraft& draft, const std::string& path) {
  if (!draft.is_private(path) || draft.is_private_dir(path) || draft.bound(path)) return;
  draft.show(path, Access::kRead);
}

// The host's own links at the top that lead into what is shown: programs are asked for as /bin/sh, and name /lib64 for their
// loader.
void link_system_directories(ViewDraft& draft) {
  for (const char* name : {"/bin", "/lib", "/lib32", "/lib64", "/libx32", "/sbin"}) {
    const std::string path = name;
    const auto& links = draft.view().root_links;
    const auto real = draft.kind_of(path) == PathKind::kSymlink ? draft.host.canonical(path) : std::nullopt;
    const auto leads_into = [&](const std::string& shown) { return is_under(*real, shown); };
    const auto linked = [&](const auto& link) { return link.first == path; };
    const auto closed = [&](const FsEntry& entry) { return !entry.glob && entry.path == path && entry.access == Access::kNone; };
    if (real && std::ranges::any_of(draft.paths.readable, leads_into) && std::ranges::none_of(links, linked) &&
        std::ranges::none_of(draft.fs.entries, closed))
      draft.view().root_links.emplace_back(path, *real);
  }
}

}  // namespace

Result<void> plan_readable(ViewDraft& draft) {
  if (draft.view().whole_root) return {};
  if (needs_own_root(draft)) show_hosts_root(draft);
  const auto show = [&](const std::string& path, const FsEntry* entry) -> Result<void> {
    const auto real = draft.host.canonical(path);
    if (!real) return {};
    if (entry != nullptr) BELLJAR_CHECK(check_opens_nothing(draft, *entry, *real));
    if (*real != path && draft.kind_of(path) == PathKind::kSymlink) draft.view().root_links.emplace_back(path, *real);
    const bool shown = std::any_of(draft.paths.readable.begin(), draft.paths.readable.end(),
                                   [&](const std::string& other) { return is_under(*real, other); });
    if (shown || draft.writable(*real)) return {};
    draft.paths.readable.push_back(*real);
    draft.show(*real, Access::kRead);
    return {};
  };
  for (const FsEntry& entry : draft.fs.entries) {
    if (!entry.glob && entry.access == Access::kRead && entry.path != "/") BELLJAR_CHECK(show(entry.path, &entry));
  }
  if (!draft.writable(draft.place.workspace)) BELLJAR_CHECK(show(draft.place.workspace, nullptr));
  link_system_directories(draft);
  return {};
}

Result<void> plan_readonly(ViewDraft& draft) {
  for (const FsEntry& entry : draft.fs.entries) {
    if (entry.glob) {
      draft.paths.gaps.push_back({.clause = "filesystem.globs",
                                  .what = format("{} ({})", entry.path, to_string(entry.access)),
                                  .where = {},
                                  .access = entry.access});
      continue;
    }
    if (entry.access != Access::kRead) continue;
    if (draft.elsewhere_at(entry.path) != nullptr) {
      BELLJAR_CHECK(keep_in_volume(draft, entry));
      continue;
    }
    const auto real = draft.host.canonical(entry.path);
    if (!real) {
      const std::string where = where_made(draft.host, entry.path);
      if (draft.writable(entry.path)) draft.add_gap("filesystem.absent_readonly", entry.path, entry.path);
      if (where != entry.path && draft.writable(where)) draft.add_gap("filesystem.absent_readonly", entry.path, where);
      continue;
    }
    BELLJAR_CHECK(check_opens_nothing(draft, entry, *real));
    const Bind* bind = draft.shown_by(*real);
    if (draft.writable(*real) || (bind != nullptr && !bind->readonly)) keep_readonly(draft, entry, *real);
    else show_through_private(draft, *real);  // --read /tmp/x
  }
  // A workspace below /tmp that nobody made writable.
  if (const FsEntry* rule = find_rule(draft.fs, draft.place.workspace); rule == nullptr || rule->access != Access::kNone) {
    if (!draft.writable(draft.place.workspace)) show_through_private(draft, draft.place.workspace);
  }
  return {};
}

}  // namespace belljar::backend
