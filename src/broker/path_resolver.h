// Finds, as the caller would, the directory that holds a path's last component: from its root and its working directory, with its
// permissions, without ever following a link of /proc that would mean our own process.
//
// The result is a descriptor and a name. What is judged is the name under the path of that descriptor; what is done is done to the
// same name under the same descriptor and follows no link there. A link that moves meanwhile changes neither.
//
// Two ways. The short one is one openat2(2) that the kernel keeps inside the caller's root (RESOLVE_IN_ROOT, RESOLVE_BENEATH).
// Where it meets a link of /proc, or "..", or what it cannot tell from them, the long one goes component by component. Not for use
// by two threads at once.
//
// CAP_SYS_PTRACE, which the thread may still have (as_caller.h), is dropped before anything is looked at that may lie on a /proc:
// for all but a path without links and dots (`./` at its start apart), to a place that is known to be on another file system.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "broker/as_caller.h"
#include "broker/caller.h"
#include "broker/mount_table.h"
#include "broker/or_errno.h"
#include "broker/start_paths.h"

namespace belljar::broker {

// Of one of our descriptors, in the caller's view (the sandbox's mounts end where its root is); with " (deleted)" when it is.
// Empty: unknown, as that of a directory deeper than PATH_MAX is. What has no known path can be judged by no rule: refuse.
std::string path_of(int fd);
bool on_proc(int fd);
// What stands at a hidden name in a masked folder (backend/native/tree.h): a link with such a text. The kernel lets its mode be
// seen and refuses to go on; here it is refused at once, so that the act is told under the hidden name.
bool is_mask(std::string_view link);
bool is_mask_at(int dir, const std::string& name);
// "/proc/self/fd/N" of ours: the way to act on the file behind an O_PATH descriptor.
std::string own_link(int fd);

// The directory where a relative path starts: a working directory or a descriptor of the caller's. Invalid for an absolute path.
struct StartDir {
  UniqueFd fd;
};

// A name in a directory that is held open. The name need not exist. File calls are judged and performed on one of these.
struct DirEntry {
  UniqueFd held;  // keeps `dir` where it is neither the root nor a start
  int dir = -1;
  std::string dir_path;  // of `dir`; empty: not asked for yet
  std::string name;      // as given, with the slashes behind it; "." for the root itself
  bool is_root = false;  // the path was nothing but slashes

  // Not "." or "..", which no call can make, move or remove.
  bool is_name() const { return !is_root && bare() != "." && bare() != ".."; }
  bool has_slash() const { return name.ends_with('/'); }
  std::string_view bare() const;  // without the slashes
  std::string path();             // dir_path + name; empty where path_of(dir) is
};

class PathResolver {
 public:
  // `root`: the caller's; `shared`: its sandbox has one root and one table of mounts. All must outlive this.
  struct Shared {
    StartPaths& starts;
    MountTable& mounts;
  };
  PathResolver(int root, Caller& caller, AsCaller& permissions, std::optional<Shared> shared)
      : root_(root), caller_(caller), permissions_(permissions), shared_(shared) {}

  // A path whose text says where it leads if there are no links on the way: no dots but "./" at its start, no empty components, a
  // start whose path is known, not on a /proc. Only the kernel tells whether there are links (RESOLVE_NO_SYMLINKS).
  struct LiteralPath {
    int base;               // the root or `start`
    std::uint64_t scope;    // RESOLVE_IN_ROOT or RESOLVE_BENEATH
    std::string dir_path;   // of the directory that holds the last component
    std::string_view name;  // without slashes behind it; points into the path
    bool writable = false;  // its mount is
  };
  std::optional<LiteralPath> literal_path(int start, std::string_view path);

  // `start` is looked at for a relative path only. The last component is not looked at. ENOENT for an empty path.
  OrErrno<DirEntry> parent(int start, std::string_view path);
  // What `path` leads to, an O_PATH descriptor (or a duplicate of the caller's, for /proc/self/fd/N).
  enum class Last { kFollow, kStay };
  OrErrno<UniqueFd> object(int start, std::string_view path, Last last);

  // Where the symbolic link at `entry` leads: another entry, or, for a link of /proc to an open file, that file.
  struct Target {
    DirEntry entry;
    UniqueFd file;
  };
  OrErrno<Target> through_link(const DirEntry& entry);

  // How far `path` leads the caller where it meets a directory that may not be searched (EACCES): that directory, and what of the
  // path comes behind it. An empty `dir`: it is something else. For explanations; it goes the long way.
  struct Barred {
    std::string dir, rest;
  };
  Barred barred(int start, std::string_view path, Last last);

  // `dir` is /proc/PID or /proc/PID/task/TID of the caller's own process, in the caller's view.
  bool is_own_process(int dir);
  // ... or of a process that the calling thread traces.
  bool is_traced_process(int dir);

  // openat2(2) RESOLVE_* that the caller asked for: NO_XDEV, NO_SYMLINKS, NO_MAGICLINKS. EXDEV and ELOOP come from them.
  //
  // BENEATH and IN_ROOT are scopes: parent() and object() keep to what lies below `start` then, whatever links there are, and take
  // the short way alone. Links of a /proc are not followed (ELOOP). A last link is the caller's to follow, with scoped_target():
  // through_link() would leave the scope.
  void restrict_to(std::uint64_t resolve) { extra_ = resolve; }
  bool scoped() const;
  // The path, from the same start, that the link at `entry` leads `path` to, whose last component it is.
  OrErrno<std::string> scoped_target(const DirEntry& entry, std::string_view path);

 private:
  OrErrno<UniqueFd> resolve_fast(int start, std::string_view path, int flags, bool& lexical);
  // kWay: more of a path comes behind it, so its last component is followed like any other.
  enum class End { kWay, kFollow, kStay };
  OrErrno<UniqueFd> resolve_slow(int start, std::string_view path, End end);
  // The text of a link in a directory of /proc, or the file that it means.
  struct ProcLink {
    std::string text;
    UniqueFd file;
  };
  OrErrno<ProcLink> proc_link(int dir, const std::string& name);
  OrErrno<UniqueFd> open_magic_link(int dir, const std::string& name, const Caller::Ids& ids);
  bool may_follow(int dir, int link) const;

  int root_;
  Caller& caller_;
  AsCaller& permissions_;
  std::optional<Shared> shared_;
  std::uint64_t extra_ = 0;
  int links_ = 0;
  Barred barred_;
};

}  // namespace belljar::broker
