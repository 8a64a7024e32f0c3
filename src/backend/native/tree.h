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

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "backend/native/host.h"
#include "launch/plan.h"

namespace belljar::backend {

// A directory of ours on the private tmpfs.
struct PrivateDir {
  std::string target;
  mode_t mode = 0700;
  bool readonly = false;  // empty but for mount points, and it stays so
};

// Something of the host shown at `target`.
struct Bind {
  std::string source, target;
  bool readonly = true;
  int detached_fd = -1;  // already captured by the parent (root only: idmapped beforehand)
  bool directory = true;
  bool lend = true;  // root: shown as the owner's own; else as everybody sees it
};

// Names below `folder` that nobody may touch, and directories that must exist there as mount points.
struct Mask {
  std::vector<std::string> hidden;  // relative to folder
  std::vector<std::string> ghosts;
  int detached_fd = -1;  // the folder itself, idmapped beforehand (root only)
  bool lent = false;     // it will be, or is
};

// A directory with a writable layer over it.
struct Cache {
  std::string path;
  bool exists = true;
  std::string kept;       // name of its layer below View::kept_pool; empty: discarded at the end
  bool scratch = false;   // of filesystem.scratch: an overlay of its own, never kept
  bool required = false;  // without the layer the host's own could be written
  int detached_fd = -1;   // what lies below, idmapped beforehand (root only, scratch outside of what a mask shows)
  std::vector<std::pair<std::string, std::string>> laid;  // in its layer from the start: names directly in it, and contents
};

// Where layers of caches are kept between two commands.
struct KeptPool {
  std::string path;
  int fd = -1;  // already captured by the parent (root only: idmapped beforehand)
};

// The workspace in a transaction: an overlay of it. Binds whose source lies in the workspace are taken out of the overlay.
struct LayeredWorkspace {
  std::string path;
  WorkspaceLayers layers;
  int workspace_fd = -1, pool_fd = -1;  // already captured by the parent (root only: idmapped beforehand)
};

// What should be seen. Paths canonical and absolute.
struct View {
  bool whole_root = true;                                       // the host's tree is the floor
  std::vector<std::pair<std::string, std::string>> root_links;  // restricted root: link -> text, "/bin" -> "usr/bin"
  std::vector<PrivateDir> private_dirs;
  std::vector<Bind> binds;
  std::vector<std::string> hide_dirs, hide_files;  // existing paths outside of masks
  std::map<std::string, Mask> masks;
  std::vector<std::string> closed;  // absent names that somebody wrote down as hidden: EACCES, where others are absent
  std::vector<Cache> caches;
  std::optional<KeptPool> kept_pool;
  std::string not_kept;  // why there is none although the policy asks for one
  std::optional<LayeredWorkspace> layered;
  std::vector<std::string> devices;
  std::vector<ShownFile> files;
  bool minimal_dev = true;
  bool fresh_proc = true;
  bool proc_optional = false;
  bool terminal = false;          // a pty will be wanted
  std::vector<std::string> seen;  // hidden paths whose use is told: the links 0, 1 ... in the directory that is given last
  std::uint64_t private_bytes = 0, private_inodes = 0;
  uid_t owner_uid = 0;  // of private directories, as the host counts
  gid_t owner_gid = 0;
  bool chown_private = false;  // root: they must be given away
  bool make_devices = false;   // root: nodes of our own are a fifth of the cost of six bind mounts
};

// At or below a name that a mask or a cover hides: nothing else is mounted there.
bool is_hidden(const View& view, std::string_view path);

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
