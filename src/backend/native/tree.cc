#include "backend/native/tree.h"

#include <string>
#include <vector>

#include "backend/native/tree_draft.h"
#include "backend/native/tree_steps.h"
#include "backend/paths/host.h"
#include "backend/paths/view.h"
#include "base/format.h"
#include "belljar/result.h"
#include "launch/plan.h"

namespace belljar::backend {

std::string stage_options(const View& view) {
  std::string options = format("size={}", view.private_bytes) + '\0' + "mode=0755" + '\0';
  if (view.private_inodes != 0) options += format("nr_inodes={}", view.private_inodes) + '\0';
  return options;
}

std::vector<std::string> build_names(const Host& host, const View& view, launch::Plan& plan) {
  TreeDraft draft(host, view, plan);
  return make_mask_names(draft);
}

Result<void> build_tree_ops(const Host& host, const View& view, launch::Plan& plan) {
  TreeDraft draft(host, view, plan);
  capture_binds(draft);
  capture_kept_pool(draft);
  capture_layers(draft);
  capture_devices(draft);
  capture_mask_floors(draft);
  keep_host_mounts(draft);

  freeze_host(draft);
  make_stage(draft);
  put_kept_pool(draft);
  make_layered(draft);
  make_hiding_places(draft);
  make_private_dirs(draft);
  make_files(draft);
  make_dev(draft);
  make_proc(draft);
  make_masks(draft);
  make_caches(draft);
  show_seen(draft);
  cover_stage(draft);

  BELLJAR_CHECK(drop_what_is_hidden(draft));
  BELLJAR_CHECK(make_mount_points(draft));
  attach_dev(draft);
  attach_proc(draft);
  attach_placements(draft);
  enter_restricted_root(draft);
  plan.slots = draft.slots;
  return {};
}

}  // namespace belljar::backend
