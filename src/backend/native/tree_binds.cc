#include <sys/mount.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "backend/native/tree_draft.h"
#include "backend/native/tree_steps.h"
#include "backend/paths/host.h"
#include "backend/paths/view.h"
#include "launch/plan.h"

namespace belljar::backend {
namespace {

bool covered_by_bind(const TreeDraft& draft, const std::string& path) {
  return std::any_of(draft.view.binds.begin(), draft.view.binds.end(),
                     [&](const Bind& bind) { return is_under(path, bind.target); });
}

// A directory of the sandbox's own lies between: in it nothing is the host's.
bool in_own_dir(const TreeDraft& draft, const std::string& path, const std::string& folder) {
  return std::ranges::any_of(draft.view.private_dirs,
                             [&](const PrivateDir& dir) { return is_under(dir.target, folder) && is_under(path, dir.target); });
}

}  // namespace

void capture_binds(TreeDraft& draft) {
  for (const Bind& bind : draft.view.binds) {
    if (in_layered(draft.view, bind.source)) continue;
    const std::uint64_t attributes = kQuiet | (bind.readonly ? MOUNT_ATTR_RDONLY : 0);
    const int to = draft.take(bind.detached_fd, bind.source, attributes, launch::kRecursive);
    draft.place(bind.target, to, bind.directory);
  }
}

void keep_host_mounts(TreeDraft& draft) {
  if (draft.view.masks.empty()) return;
  for (const std::string& mount : draft.host.mount_points()) {
    for (const auto& [folder, mask] : draft.view.masks) {
      if (mount == folder || !is_under(mount, folder) || covered_by_bind(draft, mount) || in_own_dir(draft, mount, folder))
        continue;
      const PathFacts facts = draft.host.facts(mount);
      if (facts.kind == PathKind::kAbsent) continue;
      const int to = draft.capture(mount, MOUNT_ATTR_RDONLY | kQuiet, launch::kRecursive | launch::kOptional);
      draft.place(mount, to, facts.kind == PathKind::kDirectory, launch::kOptional);
      break;
    }
  }
}

}  // namespace belljar::backend
