#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/native/tree_draft.h"
#include "backend/native/tree_overlays.h"
#include "backend/native/tree_steps.h"
#include "backend/paths/host.h"
#include "backend/paths/view.h"
#include "base/format.h"
#include "launch/plan.h"

namespace belljar::backend {
namespace {

using launch::MountOpKind;

constexpr std::size_t kMaxScratch = launch::kMaxExported - 1;  // one is show_seen()'s

// What lies below a cache's layer, top first: hidden names in it, then the host's.
std::vector<std::string> floors_of(const TreeDraft& draft, const Cache& cache) {
  std::vector<std::string> floors;
  int number = 0;
  for (const auto& [folder, mask] : draft.view.masks) {
    const std::string names = names_of(number++);
    if (cache.path == folder) floors.push_back(names);
    if (!is_under(cache.path, folder) || cache.path == folder) continue;
    const std::string relative = relative_to(cache.path, folder);
    const auto within = [&](const std::string& name) { return is_under(folder + "/" + name, cache.path); };
    if (std::ranges::any_of(mask.hidden, within) || std::ranges::any_of(mask.ghosts, within))
      floors.push_back(names + "/" + relative);
  }
  if (cache.exists) floors.push_back(reachable(draft, cache.path));
  return floors;
}

std::string lower_of(const TreeDraft& draft, const Cache& cache) {
  std::string lower;
  for (const std::string& path : floors_of(draft, cache)) lower += (lower.empty() ? "lowerdir=" : ":") + escape_layer(path);
  lower.push_back('\0');
  return lower;
}

// One overlay for one cache, so that its layer holds nothing else, whatever the policy of the next command says. Where the layer
// cannot be mounted (its file system is an overlay or a network's), what is written is discarded, and the report says so.
void make_kept_cache(TreeDraft& draft, const Cache& cache, int number) {
  const std::string lower = lower_of(draft, cache);
  const std::string layer = draft.stage("kept/" + cache.kept);
  std::string kept = "upperdir=" + layer + "/up" + '\0' + "workdir=" + layer + "/work" + '\0';
  // As for a transaction: the same for root, and no index, so that the layer fits whatever the host has in the cache by then.
  kept += std::string("userxattr") + '\0' + "index=off" + '\0';
  const int to = draft.new_slot();
  draft.add({.kind = MountOpKind::kOverlay,
             .flags = launch::kOptional,
             .slot = to,
             .attr_set = kQuiet,
             .data = lower + kept,
             .clause = "filesystem.caches",
             .without = "what is written there is discarded"});
  const std::string discarded = make_upper(draft, format("own-cache{}", number));
  draft.add({.kind = MountOpKind::kOverlay,
             .flags = launch::kOptional | launch::kIfEmpty,
             .slot = to,
             .attr_set = kQuiet,
             .data = lower + discarded});
  draft.place(cache.path, to, true, launch::kOptional);
}

void lay_files(TreeDraft& draft, const Cache& cache, const std::string& layer) {
  for (const auto& [name, contents] : cache.laid) {
    const std::string path = layer + "/" + name;
    draft.add_stage({.kind = MountOpKind::kWriteFile, .mode = 0600, .target = path, .data = contents});
    if (draft.view.chown_private)
      draft.add_stage({.kind = MountOpKind::kChown, .target = path, .uid = draft.view.owner_uid, .gid = draft.view.owner_gid});
  }
}

}  // namespace

void capture_kept_pool(TreeDraft& draft) {
  if (draft.view.kept_pool) draft.kept_slot = draft.take(draft.view.kept_pool->fd, draft.view.kept_pool->path, kQuiet);
}

void put_kept_pool(TreeDraft& draft) {
  if (draft.view.kept_pool) draft.put(draft.kept_slot, "kept");
}

std::vector<std::string> given_layers(const View& view) {
  std::vector<std::string> places;
  for (const Cache& cache : view.caches) {
    if (cache.scratch && cache.kept.empty() && places.size() < kMaxScratch) places.push_back(cache.path);
  }
  return places;
}

void make_caches(TreeDraft& draft) {
  int number = 0;
  std::size_t given = 0;
  for (const Cache& cache : draft.view.caches) {
    if (!cache.kept.empty()) {
      make_kept_cache(draft, cache, number++);
      continue;
    }
    if (!cache.scratch && std::any_of(draft.view.masks.begin(), draft.view.masks.end(), [&](const auto& mask) {
          return is_under(cache.path, mask.first) && cache.path != mask.first;
        }))
      continue;
    const int to = draft.new_slot();
    const std::string layers = make_upper(draft, format("own-cache{}", number++));
    lay_files(draft, cache, draft.stage(format("own-cache{}/up", number - 1)));
    const std::uint32_t flags = cache.required ? 0U : static_cast<std::uint32_t>(launch::kOptional);
    draft.add({.kind = MountOpKind::kOverlay,
               .flags = flags,
               .slot = to,
               .attr_set = kQuiet,
               .data = lower_of(draft, cache) + layers,
               .clause = cache.scratch ? "filesystem.scratch" : "filesystem.caches",
               .without = "it is read-only"});
    // What was written there, for who asks at the end: backend::given_layers().
    if (cache.scratch && given++ < kMaxScratch)
      draft.add({.kind = MountOpKind::kExport, .target = draft.stage(format("own-cache{}/up", number - 1))});
    draft.place(cache.path, to, true, flags);
  }
  if (draft.view.kept_pool) draft.drop("kept");
}

}  // namespace belljar::backend
