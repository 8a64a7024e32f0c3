// The steps of build_tree_ops(), in the order in which it takes them (tree.cc): each reads the view and writes the operations for
// what it is about. What has to be attached in the end is noted as a placement. tree.h says why there are two phases.
#pragma once

#include "backend/native/tree_draft.h"
#include "belljar/result.h"

namespace belljar::backend {

// --- A: captured while the host's tree is in view, before the stage covers /tmp, which may hold some of it

// Each bind, but for those that the transaction's overlay shows: tree_binds.cc
void capture_binds(TreeDraft& draft);
// The layers of kept caches: tree_caches.cc
void capture_kept_pool(TreeDraft& draft);
// Both halves of a transaction's overlay: tree_layers.cc
void capture_layers(TreeDraft& draft);
// What the policy lists beside the six of everybody: tree_dev_proc.cc
void capture_devices(TreeDraft& draft);
// Masked folders that could not be reached later, and what lies below layers that is lent: tree_masks.cc
void capture_mask_floors(TreeDraft& draft);
// An overlay shows one file system only: what the host has mounted below a masked folder is put back. tree_binds.cc
void keep_host_mounts(TreeDraft& draft);

// --- A: made on the stage

// The host's tree becomes read-only, as the floor of everything: tree_stage.cc
void freeze_host(TreeDraft& draft);
// tree_stage.cc
void make_stage(TreeDraft& draft);
// tree_caches.cc
void put_kept_pool(TreeDraft& draft);
// The workspace as the transaction has it, and everything of it that the policy treats apart: taken out of the overlay, so that
// no bind leads around the layers. tree_layers.cc
void make_layered(TreeDraft& draft);
// tree_stage.cc
void make_hiding_places(TreeDraft& draft);
void make_private_dirs(TreeDraft& draft);
void make_files(TreeDraft& draft);
// A /dev of our own: six harmless nodes, a devpts instance (other terminals of the user do not exist in it), the usual links.
// tree_dev_proc.cc
void make_dev(TreeDraft& draft);
void make_proc(TreeDraft& draft);
// The overlays that hide names, with the caches that lie in their folders: tree_masks.cc
void make_masks(TreeDraft& draft);
// Caches outside of masked folders, and those that are kept, have an overlay each: tree_caches.cc
void make_caches(TreeDraft& draft);
// View::seen: tree_masks.cc. The last to give.
void show_seen(TreeDraft& draft);
// Whoever reaches the stage un-hides every name on it. A view that shows nothing over it gets an empty directory there; a
// restricted root is pivoted away from it. tree_stage.cc
void cover_stage(TreeDraft& draft);

// --- B: attached: tree_attach.cc, tree_dev_proc.cc

// Whatever it is, it would show what is hidden: the home's own mask, a mount of the host, a protected name. Error: a volume.
Result<void> drop_what_is_hidden(TreeDraft& draft);
// In what lies over each target when it is attached: the deepest placement above it, or the host. Error: there is none.
Result<void> make_mount_points(TreeDraft& draft);
void attach_dev(TreeDraft& draft);
void attach_proc(TreeDraft& draft);
// Shallow targets first.
void attach_placements(TreeDraft& draft);
void enter_restricted_root(TreeDraft& draft);

// --- beside the others: build_names(), tree_masks.cc

// The hidden names are a file system of their own until an overlay takes them in: they are made beside all that comes between.
std::vector<std::string> make_mask_names(TreeDraft& draft);

}  // namespace belljar::backend
