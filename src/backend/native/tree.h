// From "what should be seen where" to the list of mount operations.
//
// The tree inside is the host's tree, read-only, with our own mounts over it (or, when the policy does not let "/" be read, an
// empty tree with the readable parts put in). Two phases keep it simple and free of races:
//   A  everything is *made* (captured, created, layered) as a detached mount while the host's tree is still in view; a private
//      tmpfs, parked on /tmp meanwhile, holds the private directories, the masks and the two hiding places;
//   B  everything is *attached*, shallow targets first, so that a deeper one lands on what covers it.
//
// Hidden names are held by a mask, not by mounts over files: the directory that holds them is shown through a read-only overlay
// whose upper layer has an entry for each name. That holds whether the name exists or not, survives a rename on the
// host (a bind over a file does not), leaves no stub on the host, and costs one mount for any number of names. What is there is a
// link to a link into a directory of mode 000, so it answers EACCES, and the second link's access time says at the end of the run
// that it was used (View::seen): nothing that refuses inside the kernel tells anybody. What is absent stays so: a whiteout.
#pragma once

#include <string>
#include <vector>

#include "backend/paths/host.h"
#include "backend/paths/view.h"
#include "belljar/result.h"
#include "launch/plan.h"

namespace belljar::backend {

// The mount options of the stage, as in MountOp::data.
std::string stage_options(const View& view);

// The hidden names, to `plan` (stage_names): they may be made before the rest is known. Needs masks, caches and owners of the view.
// Returns what belongs in View::seen.
std::vector<std::string> build_names(const Host& host, const View& view, launch::Plan& plan);

// Appends the operations to `plan` (mounts, stage_rest, slots). Errors: a mount point that does not exist and may not be made.
Result<void> build_tree_ops(const Host& host, const View& view, launch::Plan& plan);
// The directories of filesystem.scratch of which the sandbox then gives what was written, in the order in which it gives it.
std::vector<std::string> given_layers(const View& view);

}  // namespace belljar::backend
