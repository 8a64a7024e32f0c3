#include <sys/mount.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/native/tree_draft.h"
#include "backend/native/tree_steps.h"
#include "backend/paths/host.h"
#include "backend/paths/view.h"
#include "launch/plan.h"

namespace belljar::backend {
namespace {

using launch::MountOpKind;

std::string layered_options(const TreeDraft& draft) {
  const WorkspaceLayers& layers = draft.view.layered->layers;
  const std::string pool = draft.stage("layers") + "/";
  std::vector<std::string> lower;
  for (const std::string& layer : layers.lower) lower.push_back(pool + layer);
  lower.push_back(draft.stage("below"));
  constexpr std::size_t kLongestValue = 255;  // fsconfig(2)
  std::string joined;
  for (const std::string& layer : lower) joined += (joined.empty() ? "" : ":") + layer;
  std::string options;
  if (joined.size() <= kLongestValue) {
    options = "lowerdir=" + joined + '\0';
  } else {
    for (const std::string& layer : lower) options += "lowerdir+=" + layer + '\0';  // Linux 6.8
  }
  options += "upperdir=" + pool + layers.upper + '\0' + "workdir=" + pool + layers.work + '\0';
  // The same for root, so that a layer means the same whoever mounts it. No index: it would tie a layer to one lower directory.
  options += std::string("userxattr") + '\0' + "index=off" + '\0';
  return options;
}

}  // namespace

void capture_layers(TreeDraft& draft) {
  if (!draft.view.layered) return;
  draft.below_slot = draft.take(draft.view.layered->workspace_fd, draft.view.layered->path, MOUNT_ATTR_RDONLY | kQuiet);
  draft.layers_slot = draft.take(draft.view.layered->pool_fd, draft.view.layered->layers.pool, kQuiet);
  // An overlay shows one file system only: what the host has mounted below is put back, read-only, since no layer can hold it.
  for (const std::string& mount : draft.host.mount_points()) {
    if (mount == draft.view.layered->path || !in_layered(draft.view, mount)) continue;
    const PathFacts facts = draft.host.facts(mount);
    if (facts.kind == PathKind::kAbsent) continue;
    const int to = draft.capture(mount, MOUNT_ATTR_RDONLY | kQuiet, launch::kRecursive);
    draft.place(mount, to, facts.kind == PathKind::kDirectory);
    draft.put_back.push_back(mount);
  }
}

void make_layered(TreeDraft& draft) {
  if (!draft.view.layered) return;
  draft.put(draft.below_slot, "below");
  draft.put(draft.layers_slot, "layers");
  const int overlay = draft.new_slot();
  draft.add({.kind = MountOpKind::kOverlay, .slot = overlay, .attr_set = kQuiet, .data = layered_options(draft)});
  draft.put(overlay, "merged");
  for (const Bind& bind : draft.view.binds) {
    const bool mounted =
        std::ranges::any_of(draft.put_back, [&](const std::string& mount) { return is_under(bind.source, mount); });
    if (!in_layered(draft.view, bind.source) || mounted) continue;
    const bool whole = bind.source == draft.view.layered->path;
    const std::uint32_t flags = whole ? 0U : static_cast<std::uint32_t>(launch::kIfExists);  // the transaction may have removed it
    const std::string merged = draft.stage("merged");
    const int to = draft.capture(whole ? merged : join(merged, relative_to(bind.source, draft.view.layered->path)),
                                 kQuiet | (bind.readonly ? MOUNT_ATTR_RDONLY : 0), flags);
    draft.place(bind.target, to, bind.directory, flags);
  }
  for (const char* name : {"merged", "layers", "below"}) draft.drop(name);
}

}  // namespace belljar::backend
