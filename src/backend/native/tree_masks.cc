// Masks: overlays that hide names in a folder (tree.h says why not mounts over files).
//
// The upper layer of a mask is a directory on the stage with one entry for each name, made while the rest of
// the tree is being built, since the names take longest (build_names, MountOpKind::kAwait). How an entry
// looks decides what a program is told (MaskEntryKind):
//   - an absent name of the default list: a whiteout, so that it stays absent. Programs ask for many of
//     those, and complain of what they may not read;
//   - a plain file of mode 000, where programs stat before they open and take a directory for an error of
//     their own;
//   - a directory of mode 000, or a link that leads into one by way of a second link. The access time of that
//     second link tells at the end of the run that the name was used (show_seen);
//   - below a writable cache: a link in any case, for the command could change the mode of a file or
//     directory.
//
// A name deep in the folder makes its parents appear in the upper layer ("ghost parents"); they merge with
// the host's and show their own mode and owner, so those are copied.
//
// Caches in a masked folder share its overlay: one writable overlay is mounted on the stage, and shown as a
// read-only copy at the folder and as writable copies at the caches.
//
// Lower layers that lie below /tmp, or that root lends by an idmapped mount, get a copy on the stage first
// ("floors"): the stage covers /tmp, and an overlay takes an idmapped mount only when it is attached.
#include <sys/mount.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/native/tree_draft.h"
#include "backend/native/tree_overlays.h"
#include "backend/native/tree_steps.h"
#include "backend/paths/host.h"
#include "backend/paths/view.h"
#include "base/format.h"
#include "launch/plan.h"
#include "policy/defaults.h"

namespace belljar::backend {
namespace {

using launch::MountOpKind;

constexpr std::string_view kSeenDir = "seen";

// The lower layers of masks and caches must stay reachable while the stage covers /tmp, and an idmapped one must be attached
// before an overlay may use it: those two kinds get a copy on the stage.
bool needs_copy(const std::string& folder, int detached_fd) { return detached_fd >= 0 || is_under(folder, kStage); }

bool in_cache(const TreeDraft& draft, std::string_view path) {
  return std::any_of(draft.view.caches.begin(), draft.view.caches.end(),
                     [&](const Cache& cache) { return is_under(path, cache.path); });
}

std::vector<const Cache*> caches_of(const TreeDraft& draft, const std::string& folder) {
  std::vector<const Cache*> found;
  for (const Cache& cache : draft.view.caches) {
    if (cache.kept.empty() && !cache.scratch && is_under(cache.path, folder) && cache.path != folder) found.push_back(&cache);
  }
  return found;
}

// Parents of a masked name appear in the upper layer and merge with the host's; they show the mode and owner they have here.
void make_ghost_parents(TreeDraft& draft, const std::string& folder, const std::string& dir, const std::string& name) {
  for (std::size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
    const std::string relative = "/" + name.substr(0, slash);
    if (draft.made.contains(dir + relative)) continue;
    const PathFacts facts = draft.host.facts(folder + relative);
    draft.mkdir(dir + relative, facts.kind == PathKind::kDirectory ? (facts.mode & 07777U) | 0055U : 0755,
                in_cache(draft, folder + relative) ? GiveAway::kYes : GiveAway::kNo);
  }
}

// The name leads to a link of its own, and that to the hiding place: it can be looked at, and neither opened nor entered.
void make_seen(TreeDraft& draft, const std::string& path, const std::string& name, std::vector<std::string>& seen) {
  const std::string link = format("/{}", seen.size());
  draft.add_stage(
      {.kind = MountOpKind::kSeenLink, .source = std::string(policy::kHiddenPlace), .target = draft.stage(kSeenDir) + link});
  draft.add_stage({.kind = MountOpKind::kSymlink, .source = std::string(policy::kUsedPlace) + link, .target = name});
  seen.push_back(path);
}

// How a name is held. In a cache, where what can be written could be given another mode: a link to the hiding place, there or not.
// One of the default list that is absent stays so: programs ask for many of those, and complain.
enum class MaskEntryKind { kFile, kDirectory, kSeen, kAbsent, kLink };

MaskEntryKind mask_entry_kind_of(const TreeDraft& draft, const std::string& path) {
  if (in_cache(draft, path)) return MaskEntryKind::kLink;
  const std::vector<std::string>& closed = draft.view.closed;
  if (draft.host.facts(path).kind == PathKind::kAbsent && std::ranges::find(closed, path) == closed.end())
    return MaskEntryKind::kAbsent;
  if (policy::is_plain_file_secret(path)) return MaskEntryKind::kFile;
  return draft.view.minimal_dev ? MaskEntryKind::kSeen : MaskEntryKind::kDirectory;  // the links lie in a /dev of ours
}

// Of a home: programs make a directory of their own in them without making these, and that is refused and told with what to do.
constexpr std::string_view kBaseDirs[] = {".config", ".local", ".local/share", ".local/state", ".cache"};

// The topmost of `name` and the directories above it in `folder` that the host lacks, but for those; empty: it has them all.
std::string absent_top(const TreeDraft& draft, const std::string& folder, const std::string& name) {
  for (std::size_t end = 0; end != std::string::npos;) {
    end = name.find('/', end + 1);
    std::string top = name.substr(0, end);
    if (std::ranges::find(kBaseDirs, top) != std::end(kBaseDirs)) continue;
    if (draft.host.facts(folder + "/" + top).kind == PathKind::kAbsent) return top;
  }
  return {};
}

std::vector<MaskEntryKind> kinds_of(const TreeDraft& draft, const std::string& folder, const Mask& mask) {
  std::vector<MaskEntryKind> kinds;
  kinds.reserve(mask.hidden.size());
  for (const std::string& name : mask.hidden) kinds.push_back(mask_entry_kind_of(draft, folder + "/" + name));
  return kinds;
}

// Absent directories in which something of ours must be there all the same.
std::set<std::string> needed_tops(const TreeDraft& draft, const std::string& folder, const Mask& mask,
                                  const std::vector<MaskEntryKind>& kinds) {
  std::set<std::string> needed;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i] != MaskEntryKind::kAbsent) needed.insert(absent_top(draft, folder, mask.hidden[i]));
  }
  for (const std::string& ghost : mask.ghosts) needed.insert(absent_top(draft, folder, ghost));
  return needed;
}

// Most names are absent: hard links to one whiteout, 2.6 us each where a directory takes 3.3. Where a program complains of what is
// no plain file before it opens it, the name is one. Where the host lacks a directory and all that would lie in it is absent, one
// whiteout in its place stands for them: each directory costs a sandbox 1 KiB for as long as it lives.
void make_names(TreeDraft& draft, const std::string& folder, const Mask& mask, const std::string& dir,
                std::vector<std::string>& seen) {
  // The overlay's root shows the mode and owner of its upper layer: copy the folder's.
  const PathFacts facts = draft.host.facts(folder);
  draft.mkdir(dir, facts.mode & 07777U);
  if (draft.view.chown_private) {
    draft.add_stage({.kind = MountOpKind::kChown,
                     .target = dir,
                     .uid = mask.lent ? draft.view.owner_uid : facts.uid,
                     .gid = mask.lent ? draft.view.owner_gid : facts.gid});
  }
  std::string absent, links;
  const std::vector<MaskEntryKind> kinds = kinds_of(draft, folder, mask);
  const std::set<std::string> needed = needed_tops(draft, folder, mask, kinds);
  std::set<std::string> tops;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::string& hidden = mask.hidden[i];
    const MaskEntryKind kind = kinds[i];
    std::string name = hidden;
    if (kind == MaskEntryKind::kAbsent) {
      if (std::string top = absent_top(draft, folder, hidden); !needed.contains(top)) name = std::move(top);
      if (!tops.insert(name).second) continue;
    }
    make_ghost_parents(draft, folder, dir, name);
    if (kind == MaskEntryKind::kFile) draft.add_stage({.kind = MountOpKind::kMkfile, .mode = 0, .target = dir + "/" + name});
    else if (kind == MaskEntryKind::kDirectory) draft.mkdir(dir + "/" + name, 0);
    else if (kind == MaskEntryKind::kSeen) make_seen(draft, folder + "/" + hidden, dir + "/" + name, seen);
    else (kind == MaskEntryKind::kAbsent ? absent : links).append(name).push_back('\0');
  }
  const auto link_to = [&](const char* source, std::string& names) {
    if (!names.empty())
      draft.add_stage({.kind = MountOpKind::kLinkNames, .source = source, .target = dir, .data = std::move(names)});
  };
  link_to("../absent", absent);
  link_to("../link", links);
  for (const std::string& ghost : mask.ghosts) {
    make_ghost_parents(draft, folder, dir, ghost);
    draft.mkdir(dir + "/" + ghost, 0755, GiveAway::kYes);
  }
}

// One overlay holds the masked names of a folder and the writable layer of the caches in it: the folder is shown through a
// read-only copy of it, each cache through a writable one.
void make_mask(TreeDraft& draft, const std::string& folder, int number) {
  const std::string lower = "lowerdir=" + names_of(number) + ":" + escape_layer(reachable(draft, folder)) + '\0';
  const int to = draft.new_slot();
  const std::vector<const Cache*> caches = caches_of(draft, folder);
  if (!caches.empty()) {
    const std::string layers = make_upper(draft, format("cache{}", number));
    draft.add({.kind = MountOpKind::kOverlay,
               .flags = launch::kOptional,
               .slot = to,
               .attr_set = kQuiet,
               .data = lower + layers,
               .clause = "filesystem.caches",
               .without = "the caches are read-only"});
  }
  draft.add({.kind = MountOpKind::kOverlay,
             .flags = launch::kIfEmpty,
             .slot = to,
             .attr_set = kQuiet | (caches.empty() ? MOUNT_ATTR_RDONLY : 0),
             .data = lower});
  if (caches.empty()) return draft.place(folder, to);
  const std::string merged = draft.stage(format("cache{}/merged", number));
  draft.add({.kind = MountOpKind::kAttach, .flags = launch::kOwnPlace, .slot = to, .target = merged});
  draft.place(folder, draft.capture_own(merged, kQuiet | MOUNT_ATTR_RDONLY));
  for (const Cache* cache : caches)
    draft.place(cache->path, draft.capture_own(join(merged, relative_to(cache->path, folder)), kQuiet, launch::kOptional), true,
                launch::kOptional);
}

}  // namespace

void capture_mask_floors(TreeDraft& draft) {
  for (const auto& [folder, mask] : draft.view.masks) {
    if (!needs_copy(folder, mask.detached_fd)) continue;
    const int to = draft.take(mask.detached_fd, folder, MOUNT_ATTR_RDONLY | kQuiet, launch::kRecursive);
    draft.floors[folder] = {to, format("{}/floor{}", kStage, draft.floors.size())};
  }
  for (const Cache& cache : draft.view.caches) {
    if (cache.detached_fd < 0) continue;
    const int to = draft.take(cache.detached_fd, cache.path, MOUNT_ATTR_RDONLY | kQuiet);
    draft.floors[cache.path] = {to, format("{}/floor{}", kStage, draft.floors.size())};
  }
}

std::vector<std::string> make_mask_names(TreeDraft& draft) {
  std::vector<std::string> seen;
  if (draft.view.masks.empty()) return seen;
  draft.stage_ops = &draft.plan.stage_names;
  const std::string place(policy::kHiddenPlace);
  draft.add_stage({.kind = MountOpKind::kSymlink, .source = place, .target = draft.stage("link")});
  draft.add_stage({.kind = MountOpKind::kWhiteout, .source = place, .target = draft.stage("absent")});
  draft.mkdir(draft.stage(kSeenDir), 0555);
  int number = 0;
  for (const auto& [folder, mask] : draft.view.masks) make_names(draft, folder, mask, names_of(number++), seen);
  draft.stage_ops = &draft.plan.stage_rest;
  return seen;
}

void make_masks(TreeDraft& draft) {
  if (!draft.view.masks.empty()) draft.add({.kind = MountOpKind::kAwait});
  for (auto& [folder, floor] : draft.floors) {
    draft.mkdir(floor.path, 0755);
    draft.add({.kind = MountOpKind::kAttach, .flags = launch::kOwnPlace, .slot = floor.slot, .target = floor.path});
  }
  int number = 0;
  for (const auto& [folder, mask] : draft.view.masks) make_mask(draft, folder, number++);
}

// The one mount of ours that notes access times, and so one that can be written: the directory's mode, the broker and Landlock are
// what keeps the command from it. Whoever got around them could keep a use of his own from being told, and nothing else.
void show_seen(TreeDraft& draft) {
  if (draft.view.seen.empty()) return;
  draft.place(std::string(policy::kUsedPlace), draft.capture_own(draft.stage(kSeenDir), kQuiet | MOUNT_ATTR_NOEXEC));
  draft.add({.kind = MountOpKind::kExport, .target = draft.stage(kSeenDir)});
}

}  // namespace belljar::backend
