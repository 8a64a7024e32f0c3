#include <algorithm>
#include <string>

#include "backend/backend.h"
#include "backend/native/host.h"
#include "backend/native/tree.h"
#include "backend/native/view_draft.h"
#include "backend/native/view_steps.h"
#include "belljar/policy.h"
#include "policy/defaults.h"

namespace belljar::backend {
namespace {

bool may_be_cached(const ViewDraft& draft, const std::string& path) {
  if (draft.writable(path) || is_under(draft.place.workspace, path) || !draft.view().whole_root) return false;
  if (std::ranges::any_of(draft.fs.volumes, [&](const Volume& volume) { return is_under(path, volume.target); })) return false;
  // The home as a whole would be shown around its own rules, and below a private directory nothing is the host's.
  if (is_under(draft.place.home, path) || draft.out_of_sight(path)) return false;
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

void add_cache(ViewDraft& draft, const std::string& path) {
  if (!may_be_cached(draft, path)) return;
  if (draft.kind_of(path) == PathKind::kDirectory) {
    if (draft.host.canonical(path) == path) draft.view().caches.push_back({path, true});
    return;
  }
  if (!may_be_made(draft, path)) return;
  const std::string& home = draft.place.home;
  draft.view().masks[home].ghosts.push_back(path.substr(home.size() + 1));
  draft.view().caches.push_back({path, false});
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

void plan_caches(ViewDraft& draft) {
  const std::string& home = draft.place.home;
  if (draft.fs.caches == Caches::kOff || !draft.place.overlays || home.empty() || home == "/" ||
      draft.kind_of(home) != PathKind::kDirectory)
    return;
  for (const std::string& path : draft.fs.cache_dirs.empty() ? policy::default_cache_dirs(home) : draft.fs.cache_dirs)
    add_cache(draft, path);
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
