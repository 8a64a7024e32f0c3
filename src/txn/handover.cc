// Which new names of a layer can be handed over whole.
//
// Nothing of a layer may reach the host but what the walk saw and the rules judged: a directory goes whole only where no other
// layer has it, each of its names was seen (no whiteout is among them) and is committed. A file with several names goes only
// with all of them, for the one that stays behind would be the host's file under a second name.
//
// Marks of overlayfs are taken away before the journal is written, as from files that are linked: a commit that fails then leaves
// a layer without the notes of where its files were copied from, which serve inode numbers alone. `opaque` means more and stays:
// such a directory is made anew (stage.cc).
#include "txn/handover.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>

#include "txn/files.h"
#include "txn/stage.h"
#include "txn/walk.h"

namespace belljar::txn {
namespace {

// As many names of each file as it has.
bool holds_all_names(std::span<const PlannedChange> tree) {
  std::map<ino_t, nlink_t> missing;
  for (const PlannedChange& one : tree) {
    const struct stat& status = *one.delta.upper;
    if (S_ISDIR(status.st_mode) || status.st_nlink == 1) continue;
    --missing.try_emplace(status.st_ino, status.st_nlink).first->second;
  }
  return std::ranges::all_of(missing, [](const auto& one) { return one.second == 0; });
}

}  // namespace

bool Handover::fits(std::span<const PlannedChange> tree) {
  const bool alike = std::ranges::all_of(tree, [&](const PlannedChange& one) {
    const Delta& delta = one.delta;
    return delta.upper && !delta.lower && !one.merged && delta.layer == layer_ && (delta.plain || !S_ISDIR(delta.upper->st_mode));
  });
  if (!alike || !holds_all_names(tree) || !can_leave(tree.front().delta)) return false;
  return std::ranges::all_of(tree, [&](const PlannedChange& one) { return take_marks(one.delta); });
}

// An ordinary user's read-only directory in the layer would have to be opened for that moment.
bool Handover::can_leave(const Delta& top) {
  const auto spot = in_layer_.find(store_.layers(), layer_path(layer_, top.path));
  constexpr mode_t kOpen = S_IWUSR | S_IXUSR;
  const auto folder = spot ? find_status(spot->dir, "") : std::nullopt;
  return folder && (::geteuid() == 0 || (folder->st_mode & kOpen) == kOpen);
}

bool Handover::take_marks(const Delta& delta) {
  if (S_ISLNK(delta.upper->st_mode)) return true;  // has none, xattr(7)
  const auto spot = in_layer_.find(store_.layers(), layer_path(layer_, delta.path));
  return spot && take_overlay_attributes(spot->dir, spot->name, delta.upper->st_mode);
}

}  // namespace belljar::txn
