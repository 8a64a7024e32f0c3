// A sandbox told step by step by somebody else (bubblewrap's command line, src/bwrap), not made from a policy.
//
// A Plan (plan.h) is ours from end to end: every lock is on, and its pid 1 serves. A Recipe is the caller's: what it does not ask
// for is not locked, descriptors and session are handed on, and the command may be pid 1 itself. So it has steps and a tree of its
// own, and shares with the rest of the room the mount calls, the network helper, and the rule that nothing is allocated or
// formatted between clone3 and execve.
//
// Mount points are resolved inside the new root as a process with that root would (RESOLVE_IN_ROOT), from a descriptor of it: a
// link in a workspace leads nowhere but into what the recipe has shown so far (CVE-2026-87766).
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/result.h"

namespace belljar::launch {

struct RecipeOp {
  enum class Kind : std::uint8_t {
    kBind,     // `source` of the host, or what `fd` is open on, with everything mounted below
    kOverlay,  // of `layers`, the lowest first; writes go to `source` (work directory: `work`), to a tmpfs (`own_upper`), or
               // nowhere
    kProc,     // new procfs where the process ids are our own, else the host's
    kDev,      // the minimal /dev
    kTmpfs,    // with `options`
    kMqueue,
    kDirectory,  // with `perms`; one that exists stays as it is
    kFile,       // with `perms` and what is read from `fd`
    kBindData,   // the same, as a mount of its own
    kSymlink,    // `dest` -> `source`; the same one may exist
    kReadOnly,   // the mount at `dest`, not what is below it
    kChmod,
    kHostname,  // `source`
  };
  Kind kind{};
  bool read_only = false;
  bool devices = false;    // kBind: device files work
  bool if_exists = false;  // kBind: nothing is done where there is no source
  bool own_upper = false;
  int fd = -1;
  mode_t perms = 0;  // directories that are missing above are open to group and others only where this is; 0: the caller's alone
  std::string source, dest, work;
  std::string options;  // kTmpfs: as MountOp::data
  std::vector<std::string> layers;
  bool operator==(const RecipeOp&) const = default;
};

struct Recipe {
  std::uint64_t namespaces = 0;  // CLONE_NEW*; the mount namespace is always new
  uid_t uid = 0, real_uid = 0;   // inside; of the caller
  gid_t gid = 0, real_gid = 0;
  int userns = -1, userns2 = -1, pidns = -1;  // descriptors of namespaces that are there already
  bool disable_userns = false, assert_userns_disabled = false;
  std::vector<RecipeOp> ops;

  std::uint64_t capabilities = 0;  // what the command has
  bool set_capabilities = true;    // false: all that the caller has, untouched
  bool new_session = false, die_with_parent = false, as_pid_1 = false;
  std::vector<std::string> lock_files;  // read-locked, as paths inside, while pid 1 lives
  int sync_fd = -1, block_fd = -1, userns_block_fd = -1, info_fd = -1, json_status_fd = -1;
  std::vector<std::vector<sock_filter>> filters;

  std::string chdir;  // empty: `cwd`, or else `home`, or else /
  std::string cwd, home;
  std::vector<std::string> argv;
  std::string program;           // found by PATH of `env`; argv[0] may be another name
  std::vector<std::string> env;  // PWD is set to the directory that was entered
  std::string terminal;          // the caller's, for /dev/console; empty: none
  std::vector<int> used_fds;     // the caller's descriptors that are not handed on
};

// Why the command did not start. `op`: index into Recipe::ops, -1 none. `detail`: what was found there.
struct RecipeFailure {
  enum class FailedStep : std::uint8_t {
    kNone,
    kJoinUserns,
    kJoinUserns2,
    kJoinPidns,
    kClone,
    kWait,
    kLoopback,
    kUidMap,
    kSetgroups,
    kGidMap,
    kSwitchIds,
    kPrivate,
    kRoot,
    kSource,   // it is not there, or cannot be opened
    kParents,  // directories above the mount point
    kDirectory,
    kFile,
    kBind,
    kBindRace,
    kOverlay,
    kProc,
    kProcCover,
    kDev,
    kTmpfs,
    kMqueue,
    kWrite,
    kSymlink,
    kSymlinkIsOther,  // `detail`: where it leads
    kSymlinkIsNone,
    kReadOnly,
    kChmod,
    kHostname,
    kPivot,
    kDisableUserns,
    kUsernsNotDisabled,
    kCapabilities,
    kChdir,
    kSession,
    kFork,
    kLockFile,  // `op`: index into Recipe::lock_files
    kFilter,
    kInfo,
    kExec,
  };
  FailedStep at = FailedStep::kNone;
  int op = -1;
  int errnum = 0;
  std::string detail;
};

struct RecipeEnd {
  RecipeFailure failure;  // at != kNone: there was no command
  int exit_code = 1;      // the command's own, or 128 + the signal that ended it
};

// Starts the recipe and waits for the end of its first command. What else it started may live on, unless the recipe says that it
// dies with us. The process that calls is single-threaded and lives for this alone: it gives up its other descriptors, and its
// privileges.
RecipeEnd run_recipe(const Recipe& recipe);

}  // namespace belljar::launch
