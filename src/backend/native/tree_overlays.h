// What the overlays of masks (tree_masks.cc) and of caches (tree_caches.cc) have in common: the option pairs of fsconfig(2), each
// ended by a zero byte, and where their layers lie on the stage.
#pragma once

#include <string>

#include "backend/native/tree_draft.h"

namespace belljar::backend {

// The layer with the hidden names of the mask of this number.
std::string names_of(int number);
// In lowerdir a colon separates layers and a backslash escapes, overlayfs.rst; a comma is no separator with fsconfig(2).
std::string escape_layer(const std::string& path);
// The host's path as it can be reached now: below the copy of a mask's floor if there is one.
std::string reachable(const TreeDraft& draft, const std::string& path);
// Makes the writable half of an overlay; its options.
std::string make_upper(TreeDraft& draft, const std::string& name);

}  // namespace belljar::backend
