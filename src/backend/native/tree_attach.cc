// Phase B: everything is attached, shallow targets first, so that a deeper mount lands on what covers its
// place.
//
// A mount needs a mount point that exists. On the host none is ever made: a target that is absent there is an
// error, unless what lies over it is ours (a private directory, a restricted root, a ghost of a mask), where
// it is made beforehand on the stage. In a volume the mount point is what the volume has at that name, so its
// source is asked.
//
// Whatever would be attached below a hidden directory is dropped first: it would show what is hidden.
//
// A restricted root is filled while it lies on the stage, made read-only, and entered with pivot_root(2)
// last. With the host's tree as root nothing is pivoted: the tree was made read-only in place (freeze_host)
// in a mount namespace of our own.
#include <sys/mount.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "backend/native/tree_draft.h"
#include "backend/native/tree_steps.h"
#include "backend/paths/host.h"
#include "backend/paths/view.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "launch/plan.h"

namespace belljar::backend {
namespace {

using launch::MountOpKind;

// Another placement between `folder` and `target` brings the mount point itself.
bool hidden_below(const TreeDraft& draft, const std::string& folder, const std::string& target) {
  return std::any_of(draft.placements.begin(), draft.placements.end(), [&](const Placement& other) {
    return other.target != folder && other.target != target && is_under(other.target, folder) && is_under(target, other.target);
  });
}

bool placed_above(const TreeDraft& draft, const Placement& placement) {
  return std::any_of(draft.placements.begin(), draft.placements.end(), [&](const Placement& other) {
    return other.target != placement.target && is_under(placement.target, other.target);
  });
}

Result<void> check_mount_point(const TreeDraft& draft, const Placement& placement) {
  if ((placement.flags & (launch::kIfExists | launch::kOptional)) != 0 || !draft.view.whole_root) return {};
  for (const auto& [folder, path] : draft.own) {
    if (is_under(placement.target, folder)) return {};
  }
  for (const auto& [folder, mask] : draft.view.masks) {
    for (const std::string& ghost : mask.ghosts) {
      if (is_under(placement.target, folder + "/" + ghost)) return {};
    }
  }
  if (draft.host.facts(placement.target).kind != PathKind::kAbsent) return {};
  // In a volume it is what the volume has there.
  const std::string parent = parent_of(placement.target);
  if (draft.host.facts(join(behind(draft.view, parent), relative_to(placement.target, parent))).kind != PathKind::kAbsent)
    return {};
  return Error(Code::kInvalidArgument, format("cannot show anything at {}", quoted(placement.target)))
      .reason("the path does not exist, and a sandbox leaves no stub on the host")
      .next("create it first, or choose a target below /tmp");
}

}  // namespace

Result<void> drop_what_is_hidden(TreeDraft& draft) {
  for (const Bind& bind : draft.view.binds) {
    if (bind.source != bind.target && is_hidden(draft.view, bind.target))
      return Error(Code::kInvalidArgument, format("cannot show the volume {} at {}", quoted(bind.source), quoted(bind.target)))
          .reason("a rule hides that place, or one above it")
          .next("choose another target, or drop the rule");
  }
  std::erase_if(draft.placements,
                [&](const Placement& placement) { return !placement.cover && is_hidden(draft.view, placement.target); });
  return {};
}

Result<void> make_mount_points(TreeDraft& draft) {
  if (!draft.view.whole_root) {
    for (const std::string_view folder : {"/proc", "/dev"})
      draft.make_path(draft.stage("root"), std::string(folder.substr(1)), true, 0755);
    for (const Placement& placement : draft.placements) {
      if (!placed_above(draft, placement))
        draft.make_path(draft.stage("root"), relative_to(placement.target, "/"), placement.directory, 0755);
    }
  }
  for (const Placement& placement : draft.placements) {
    for (const auto& [folder, path] : draft.own) {
      if (placement.target == folder || !is_under(placement.target, folder) || hidden_below(draft, folder, placement.target))
        continue;
      draft.make_path(path, relative_to(placement.target, folder), placement.directory, 0755);
    }
    BELLJAR_CHECK(check_mount_point(draft, placement));
  }
  return {};
}

void attach_placements(TreeDraft& draft) {
  std::stable_sort(draft.placements.begin(), draft.placements.end(),
                   [](const Placement& a, const Placement& b) { return depth_of(a.target) < depth_of(b.target); });
  for (const Placement& placement : draft.placements) {
    draft.add(
        {.kind = MountOpKind::kAttach, .flags = placement.flags, .slot = placement.slot, .target = draft.at(placement.target)});
  }
}

void enter_restricted_root(TreeDraft& draft) {
  if (draft.view.whole_root) return;
  draft.add({.kind = MountOpKind::kSetAttr, .attr_set = MOUNT_ATTR_RDONLY, .target = draft.stage("root")});
  draft.add({.kind = MountOpKind::kPivot, .target = draft.stage("root")});
}

}  // namespace belljar::backend
