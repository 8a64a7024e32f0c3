#include <sys/mount.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "backend/native/tree.h"
#include "backend/native/tree_draft.h"
#include "backend/native/tree_steps.h"
#include "backend/paths/host.h"
#include "backend/paths/view.h"
#include "base/format.h"
#include "launch/plan.h"

namespace belljar::backend {
namespace {

using launch::MountOpKind;

void make_private_dir(TreeDraft& draft, const PrivateDir& dir, const std::string& name) {
  draft.mkdir(draft.stage(name), dir.mode, dir.mode == 0700 ? GiveAway::kYes : GiveAway::kNo);
  draft.place(dir.target, draft.capture_own(draft.stage(name), kQuiet | (dir.readonly ? MOUNT_ATTR_RDONLY : 0)));
  draft.own[dir.target] = draft.stage(name);
}

}  // namespace

void freeze_host(TreeDraft& draft) {
  // Of a restricted root only the propagation matters: nothing of this tree stays.
  const std::uint64_t attributes = draft.view.whole_root ? MOUNT_ATTR_RDONLY | kQuiet : kQuiet;
  draft.add({.kind = MountOpKind::kSetAttr, .flags = launch::kRecursive, .attr_set = attributes, .target = "/"});
}

void make_stage(TreeDraft& draft) {
  draft.add({.kind = MountOpKind::kStage, .attr_set = kQuiet, .target = std::string(kStage), .data = stage_options(draft.view)});
  if (draft.view.whole_root) return;
  draft.mkdir(draft.stage("newroot"), 0755);
  draft.mkdir(draft.stage("root"), 0755);
  const int root = draft.capture(draft.stage("newroot"), kQuiet, launch::kRecursive);
  draft.add({.kind = MountOpKind::kAttach, .slot = root, .target = draft.stage("root")});
  for (const auto& [link, text] : draft.view.root_links) {
    draft.make_path(draft.stage("root"), relative_to(parent_of(link), "/"), true, 0755);
    draft.add_stage({.kind = MountOpKind::kSymlink, .source = text, .target = draft.at(link)});
  }
}

void make_hiding_places(TreeDraft& draft) {
  if (draft.view.hide_dirs.empty() && draft.view.hide_files.empty()) return;
  draft.mkdir(draft.stage("hidden"), 0);
  draft.add_stage({.kind = MountOpKind::kMkfile, .mode = 0, .target = draft.stage("hidden-file")});
  const auto cover = [&](const std::string& target, std::string_view with, bool directory) {
    draft.place(target, draft.capture_own(draft.stage(with), MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC | kQuiet), directory,
                launch::kIfExists);
    draft.placements.back().cover = true;
  };
  for (const std::string& path : draft.view.hide_dirs) cover(path, "hidden", true);
  for (const std::string& path : draft.view.hide_files) cover(path, "hidden-file", false);
}

void make_private_dirs(TreeDraft& draft) {
  int number = 0;
  for (const PrivateDir& dir : draft.view.private_dirs) make_private_dir(draft, dir, format("private{}", number++));
}

void cover_stage(TreeDraft& draft) {
  const bool covered = std::ranges::any_of(
      draft.placements, [](const Placement& placement) { return placement.target == kStage && placement.flags == 0; });
  if (draft.view.whole_root && !covered) make_private_dir(draft, {std::string(kStage), 0755, true}, "cover");
}

void make_files(TreeDraft& draft) {
  int number = 0;
  for (const auto& [targets, contents] : draft.view.files) {
    const std::string path = format("{}/file{}", kStage, number++);
    draft.add_stage({.kind = MountOpKind::kWriteFile, .mode = 0644, .target = path, .data = contents});
    for (const std::string& target : targets)
      draft.place(target, draft.capture_own(path, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC | kQuiet), false, launch::kIfExists);
  }
}

}  // namespace belljar::backend
