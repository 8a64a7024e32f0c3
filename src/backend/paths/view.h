// What a command is to see of the host, and what of its own: the part of a PathPlan that mounts make. A value.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/paths/host.h"

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

// Mounts are attached shallow first: the deepest is what is shown, the last of those of one place. nullptr: none is above `path`.
template <typename Mounted>
const Mounted* deepest_at(const std::vector<Mounted>& mounts, std::string_view path) {
  const Mounted* nearest = nullptr;
  for (const Mounted& one : mounts) {
    if (is_under(path, one.target) && (nearest == nullptr || one.target.size() >= nearest->target.size())) nearest = &one;
  }
  return nearest;
}

// Names below `folder` that nobody may touch, and directories that must exist there as mount points.
struct Mask {
  std::vector<std::string> hidden;  // relative to folder, none below another
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

// The host's own name of what is shown at `path`.
std::string behind(const View& view, const std::string& path);

// /dev, /proc and the like have mounts of ours inside: no overlay there.
bool mounted_under(std::string_view path);
// Of those, what is no place for files: /dev/shm is one.
bool is_kernels(std::string_view path);

}  // namespace belljar::backend
