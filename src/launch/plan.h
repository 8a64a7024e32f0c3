// Everything the launcher does for one sandbox, decided beforehand and held as plain data.
//
// backend/native turns a Policy into a Plan (what is allowed becomes what is done); the launcher's child executes it between clone3
// and execve without allocating, formatting or deciding. So a Plan can be printed, compared and tested without a
// kernel, and the child code stays a table.
//
// Paths in mount operations are absolute and canonical: the child resolves them with RESOLVE_NO_SYMLINKS, so a link that a hostile
// workspace puts in the way fails the start instead of moving a mount point (CVE-2026-87766, CVE-2025-31133).
#pragma once

#include <linux/filter.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "kernel/netlink.h"
#include "kernel/seccomp.h"
#include "launch/early_setup.h"

namespace belljar::launch {

enum class MountOpKind : std::uint8_t {
  kCapture,    // slot = detached copy of `source` (kRecursive: with everything mounted below), then attributes, then idmap
  kUseFd,      // slot = `fd`, a detached mount made by the parent before clone
  kTmpfs,      // slot = new tmpfs, `data` = "size=...,mode=...", attributes
  kProc,       // slot = new procfs of our pid namespace
  kDevpts,     // slot = new devpts instance
  kMqueue,     // slot = new mqueue
  kOverlay,    // slot = new overlay; `data` holds "lowerdir=...\0upperdir=...\0" as option pairs
  kAttach,     // move slot to `target`; the slot is empty afterwards
  kDetach,     // the mount at `target` goes away; what was made of it stays
  kSetAttr,    // mount_setattr on `target` in place (kRecursive)
  kMkdir,      // mkdir `target` with `mode` (existing is fine)
  kMkfile,     // create the empty file `target` with `mode`
  kWriteFile,  // create `target` with `mode` and the bytes of `data`
  kDevice,     // character device `target`, number `device`, mode 0666; where that is refused, or without a number: `source` bound
  kSymlink,    // `target` -> `source`
  kSeenLink,   // kSymlink with an access time of 0, which the first use of the link ends (relatime)
  kWhiteout,   // `target` is absent in overlays that have it in an upper layer; where that is refused: kSymlink
  kLinkNames,  // hard links to `source` (relative to `target`) under each of the NUL-ended names of `data` below directory `target`
  kChown,      // lchown `target` to `uid`, `gid` (only on file systems of our own)
  kExport,     // the directory `target`, opened for whoever starts the sandbox (Sandbox::take_exported); at most kMaxExported of a
               // plan
  kStage,  // the stage at `target`: ready-made, or a new tmpfs of `data` and attributes, with Plan::stage_rest done, names begun
  kAwait,  // until the names on the stage are done
  kPivot,  // pivot_root into `target`, detach the old root
};

enum MountOpFlags : std::uint32_t {
  kRecursive = 1U << 0,
  kOptional = 1U << 1,  // failure is recorded (launch::Sandbox::skipped), not fatal
  kIfExists = 1U << 2,  // ENOENT/ENOTDIR on source or target: skip silently (a path vanished since the plan was made)
  kOwnPlace = 1U << 3,  // the path lies on a file system that this plan made, where nobody can have put a link: not checked again
  kIfEmpty = 1U << 4,   // only when the slot is still empty: the second choice after a kOptional operation
};

struct MountOp {
  MountOpKind kind{};
  std::uint32_t flags = 0;
  int slot = -1;               // index into the child's table of detached mounts, < Plan::slots
  int fd = -1;                 // kUseFd: descriptor owned by the Plan
  std::uint64_t attr_set = 0;  // MOUNT_ATTR_*
  std::uint64_t attr_clr = 0;
  mode_t mode = 0;
  dev_t device = 0;
  std::string source;
  std::string target;
  std::string data;
  uid_t uid = 0;
  gid_t gid = 0;
  std::string_view clause;   // of the enforcement report that this operation serves, lowered when a kOptional one fails
  std::string_view without;  // then, what that leaves
};

// The clause that an empty session keyring serves.
inline constexpr std::string_view kKeyringClause = "keyring";
inline constexpr int kSkippedKeyring = -1;  // in the place of an operation's index

struct LandlockRule {
  std::string path;
  std::uint64_t access = 0;  // LANDLOCK_ACCESS_FS_*
};

struct LandlockSpec {
  bool enabled = false;
  std::uint64_t handled_fs = 0;
  std::uint64_t handled_net = 0;
  std::uint64_t scoped = 0;
  std::vector<LandlockRule> rules;        // paths that do not exist are skipped
  std::vector<std::uint16_t> bind_ports;  // allowed when handled_net holds BIND_TCP
  std::vector<std::uint16_t> connect_ports;
};

// A socket of the sandbox's own network namespace, made while the child may still bind any port; the parent gets it
// (Sandbox::take_sockets()).
struct InnerSocket {
  enum class Kind : std::uint8_t {
    kListener,  // TCP, listening
    kDatagram,  // UDP, bound; tells where each datagram was sent to (IP_PKTINFO)
    kDiag,      // netlink sock_diag
    kMaker,     // a SOCK_SEQPACKET to pid 1: for each packet of one byte it sends one back, with a new TCP socket (4 or 6), or with
                // the ends of a new AF_UNIX SOCK_SEQPACKET pair ('p', of Purpose::kPairs alone), or with none. At most one of a
                // plan is for kPairs and one for something else
  };
  // What it is for; the launcher does not ask.
  enum class Purpose : std::uint8_t { kProxy, kDirect, kDns, kDnsStream, kDiag, kHostPort, kMaker, kPeers, kPairs };
  Purpose purpose = Purpose::kProxy;
  Kind kind = Kind::kListener;
  std::uint32_t address = 0x7F000001;  // as a number
  std::uint16_t port = 0;
  std::uint16_t host_port = 0;    // kHostPort: what it leads to
  bool transparent = false;       // may answer for addresses that are not the machine's (IP_TRANSPARENT)
  bool without_redirect = false;  // only where Plan::redirect was refused
  bool operator==(const InnerSocket&) const = default;
};
inline constexpr std::size_t kMaxInnerSockets = 50;

inline constexpr std::size_t kMaxExported = 9;

struct RlimitSpec {
  int resource = 0;
  rlimit value{};
};

enum class Identity : std::uint8_t {
  kKeep,        // no user namespace
  kSelfMapped,  // ordinary user: CLONE_NEWUSER at clone; the child maps its own id
  kSwitched,    // root without namespaces: setresuid to outside_*
  kRootMapped,  // root: namespaces first as real root, then unshare(CLONE_NEWUSER) and the parent maps inside_* to outside_*
};

struct Plan {
  std::uint64_t clone_flags = 0;  // CLONE_NEW*
  Identity identity = Identity::kKeep;
  uid_t inside_uid = 0, outside_uid = 0;
  gid_t inside_gid = 0, outside_gid = 0;
  bool loopback_up = false;          // with CLONE_NEWNET: raise its loopback
  std::vector<InnerSocket> sockets;  // with CLONE_NEWNET and loopback_up; at most kMaxInnerSockets
  kernel::NetlinkBatch routes;       // with loopback_up: sent once it is up; without bytes: nothing
  kernel::NetlinkBatch redirect;     // after `routes`; what comes of both is in Sandbox::redirected()
  std::vector<MountOp> mounts;
  // On the stage (stage.h), targets relative to it: the hidden names, which take long and are wanted last, and what else is made.
  std::vector<MountOp> stage_names, stage_rest;
  int slots = 0;
  std::vector<UniqueFd> kept_fds;  // descriptors that ops name
  std::vector<RlimitSpec> rlimits;
  bool drop_privileges = true;    // capabilities, securebits, no_new_privs, session keyring
  bool keyring_required = false;  // a keyring that is refused (by an outer sandbox's filter) ends the start; else it is told
  LandlockSpec landlock;
  std::vector<sock_filter> seccomp;
  kernel::SeccompSpec seccomp_spec;              // what it was made from, for whoever answers its notifications
  bool seccomp_listener = false;                 // pass the notification descriptor to the parent
  bool subreaper = false;                        // without a pid namespace: become the reaper of the tree
  int cgroup_fd = -1;                            // v2 cgroup directory for CLONE_INTO_CGROUP; -1 none
  std::vector<std::string> join_files;           // cgroup files that the child writes "0" (itself) to
  bool want_pty = false;                         // make a pty on the sandbox's own devpts; master goes to the parent
  unsigned short pty_rows = 0, pty_columns = 0;  // its size from the first moment
  std::string default_cwd = "/";
  std::vector<std::string> env;  // "K=V", the whole environment
  // Namespaces and the stage, begun beforehand; without it the child makes them. Last, since it uses what is above.
  std::unique_ptr<EarlySetup> early;
};

// Lets go of what only a start needs (a hundred KiB, and descriptors), of a plan whose sandbox lives on: identity, environment and
// what the filter was made from stay.
void forget_start(Plan& plan) noexcept;

// One process to start inside: argv, environment, directory, descriptors.
struct ExecRequest {
  std::vector<std::string> argv;
  std::vector<std::string> env;  // empty: Plan::env
  std::string cwd;               // empty: Plan::default_cwd
  int stdio[3] = {-1, -1, -1};   // descriptors of the caller; -1: /dev/null
  bool pty = false;              // stdio that is -1 is the sandbox's pty instead, and that becomes the controlling terminal
  bool own_terminal = false;     // stdio[0] is a terminal of its own and becomes the controlling one
  // The command adopts its orphaned descendants while it runs (PR_SET_CHILD_SUBREAPER), so that its tree can be found and ended.
  bool adopt = false;
};

}  // namespace belljar::launch
