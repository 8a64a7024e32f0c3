#include <algorithm>
#include <string>
#include <utility>

#include "backend/backend.h"
#include "backend/paths/draft.h"
#include "backend/paths/host.h"
#include "backend/paths/steps.h"
#include "backend/paths/view.h"
#include "belljar/policy.h"
#include "policy/defaults.h"

namespace belljar::backend {
namespace {

bool may_be_layered(const ViewDraft& draft, const std::string& path) {
  if (is_under(draft.place.workspace, path) || !draft.view().whole_root) return false;
  if (std::ranges::any_of(draft.fs.volumes, [&](const Volume& volume) { return is_under(path, volume.target); })) return false;
  // The home as a whole would be shown around its own rules, and below a private directory nothing is the host's.
  return !is_under(draft.place.home, path) && !draft.out_of_sight(path);
}

bool may_be_cached(const ViewDraft& draft, const std::string& path) {
  if (draft.writable(path) || !may_be_layered(draft, path)) return false;
  const FsEntry* rule = find_rule(draft.fs, path);
  const bool narrowed =
      rule != nullptr && (rule->path == path || is_under(rule->path, draft.place.home)) && rule->access != Access::kWrite;
  return !narrowed;
}

// Absent ones would cost a mount each for programs that never run: only the two that any tool may want.
bool may_be_made(const ViewDraft& draft, const std::string& path) {
  const std::string& home = draft.place.home;
  const std::string parent = parent_of(path);
  const bool common = path == home + "/.cache" || path == home + "/.npm";
  return common && draft.kind_of(path) == PathKind::kAbsent && is_under(parent, home) &&
         draft.kind_of(parent) == PathKind::kDirectory && !draft.writable(home);
}

// In the mask of the home, for a layer over a directory that the host does not have.
void add_absent(ViewDraft& draft, Cache cache) {
  const std::string& home = draft.place.home;
  draft.view().masks[home].ghosts.push_back(cache.path.substr(home.size() + 1));
  cache.exists = false;
  draft.view().caches.push_back(std::move(cache));
}

void add_cache(ViewDraft& draft, const std::string& path) {
  if (!may_be_cached(draft, path)) return;
  if (draft.kind_of(path) == PathKind::kDirectory) {
    if (draft.host.canonical(path) == path) draft.view().caches.push_back({.path = path});
    return;
  }
  if (may_be_made(draft, path)) add_absent(draft, {.path = path});
}

// No link inside something writable leads there, which a command could have pointed elsewhere.
bool is_plain_way(const ViewDraft& draft, const std::string& path) {
  for (std::string at = path; at != "/"; at = parent_of(at)) {
    if (draft.kind_of(at) == PathKind::kSymlink && draft.writable(at)) return false;
  }
  return true;
}

// Below the home, and no link on the way.
bool may_be_ghost(const ViewDraft& draft, const std::string& path) {
  const std::string& home = draft.place.home;
  if (home.empty() || home == "/" || !is_under(path, home) || draft.writable(path) || draft.kind_of(home) != PathKind::kDirectory)
    return false;
  std::string up = parent_of(path);
  while (up != home && draft.kind_of(up) == PathKind::kAbsent) up = parent_of(up);
  return draft.kind_of(up) == PathKind::kDirectory && draft.host.canonical(up) == up;
}

void add_scratch(ViewDraft& draft, const std::string& path) {
  // An entry for this very directory says more; a file of the workspace may not let writes through.
  if (const FsEntry* rule = find_rule(draft.fs, path);
      rule != nullptr && rule->path == path && !(rule->kind == RuleKind::kNarrowing && rule->access == Access::kWrite))
    return;
  const auto real = draft.host.canonical(path);
  if (!real) {
    const std::string where = where_made(draft.host, path);
    if (where == path && draft.place.overlays && may_be_layered(draft, path) && may_be_ghost(draft, path))
      return add_absent(draft, {.path = path, .scratch = true});
    if (draft.writable(where)) draft.add_gap("filesystem.absent_readonly", path, where);
    return draft.add_gap("filesystem.scratch", path);
  }
  const bool writable = draft.writable(*real);
  if (draft.place.overlays && draft.kind_of(*real) == PathKind::kDirectory && may_be_layered(draft, *real) &&
      is_plain_way(draft, path))
    return draft.view().caches.push_back({.path = *real, .scratch = true, .required = writable});
  if (writable) draft.add_readonly(*real);
  draft.add_gap("filesystem.scratch", path);
}

// A layer is writable all over.
void keep_readonly_in_caches(ViewDraft& draft) {
  const auto in_cache = [&](const std::string& path) {
    return std::ranges::any_of(draft.view().caches, [&](const Cache& cache) { return is_under(path, cache.path); });
  };
  for (const FsEntry& entry : draft.fs.entries) {
    if (entry.glob || entry.access != Access::kRead) continue;
    const auto real = draft.host.canonical(entry.path);
    if (!real || !in_cache(*real) || draft.bound(*real)) continue;
    draft.show(*real, Access::kRead);
  }
}

}  // namespace

void plan_scratch(ViewDraft& draft) {
  for (const std::string& path : draft.fs.scratch) add_scratch(draft, path);
}

void plan_caches(ViewDraft& draft) {
  const std::string& home = draft.place.home;
  if (draft.fs.caches != Caches::kOff && draft.place.overlays && !home.empty() && home != "/" &&
      draft.kind_of(home) == PathKind::kDirectory) {
    for (const std::string& path : draft.fs.cache_dirs.empty() ? policy::default_cache_dirs(home) : draft.fs.cache_dirs)
      add_cache(draft, path);
  }
  keep_readonly_in_caches(draft);
}

void show_home(ViewDraft& draft) {
  const std::string& home = draft.place.home;
  if (!draft.view().whole_root) return;  // only what is named: its secrets have no mask there
  if (home.empty() || home == "/" || !draft.is_private(home) || draft.writable(home) || draft.view().masks.contains(home) ||
      draft.kind_of(home) != PathKind::kDirectory)
    return;
  draft.show(home, Access::kRead);
}

}  // namespace belljar::backend
