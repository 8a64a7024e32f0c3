// The seam: a backend turns a policy into a plan for the launcher and says, clause by clause, what this machine holds it with.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "broker/broker.h"
#include "broker/file_rules.h"
#include "launch/plan.h"

namespace belljar::backend {

// The host id that root's command takes when a workspace cannot be lent, and whose home the caller's own was (paths/owner.h).
struct Owner {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string callers_home;
};

// Layers of a transaction: the workspace is shown through an overlay, and what is written lands in `upper`.
struct WorkspaceLayers {
  std::string pool;                // a directory of the host that holds them all, absolute
  std::vector<std::string> lower;  // "N/up" below the pool, top first; below them lies the workspace
  std::string upper, work;         // "N/up", "N/work"
};

// filesystem.caches = "workspace": where the writable layers of this workspace's caches lie between two commands
// (runtime/kept_caches.h).
struct KeptCaches {
  std::string pool;            // a directory of the host, absolute; empty: nothing can be kept this time
  std::string why_not;         // then, one clause
  std::shared_ptr<void> lock;  // nobody else uses `pool` while this lives
};

// filesystem.siblings = "hidden": directories that other living sandboxes of this user work in (runtime/living.h).
struct SiblingWorkspaces {
  std::vector<std::string> hidden;   // canonical, none within another; one that is gone is passed over
  std::vector<std::string> visible;  // those that stay, each with the reason, for the report
  std::string unknown;               // why nobody can say which there are; empty: these are all
  bool asked = false;                // somebody wrote it down: where nothing holds it, the start is refused
};

// A file that is shown inside, read-only, at each of these paths instead of what is there. A path that the host
// lacks is left out, but for one below /dev.
struct ShownFile {
  std::vector<std::string> paths;
  std::string contents;
};

// Where the command works, and what the caller knows of itself. Absolute, canonical paths.
// Some of them are a control group's.
inline bool wants_group(const Limits& limits) noexcept {
  return limits.memory || limits.memory_request || limits.cpus || limits.cpu_request || limits.pids;
}

struct Workplace {
  std::string workspace;
  std::string cwd;          // inside the workspace
  std::string home;         // the caller's; may be empty
  std::string tmpdir;       // caller's $TMPDIR, may be empty
  std::string runtime_dir;  // caller's $XDG_RUNTIME_DIR, may be empty
  // False on a second try, when this machine's overlayfs refused: existing secrets are covered one by one, absent ones are a gap.
  bool overlays = true;
  // False on a second try, when the kernel refused a seccomp listener (one per chain of filters: inside another sandbox that has
  // one): control names are held by mounts as far as mounts can, and sockets by path cannot be made.
  bool listener = true;
  bool one_command = false;                   // and then it ends
  std::optional<Owner> owner;                 // set by the native backend only
  std::optional<WorkspaceLayers> layers;      // set: run in a transaction. kUnimplemented from a backend that cannot
  std::optional<SiblingWorkspaces> siblings;  // set: they are to be hidden
  std::optional<KeptCaches> kept_caches;      // of the native backend; the others say in their reports that they keep none
  std::vector<std::string> env;               // the environment for the command, "K=V", already filtered by the policy
  // By the native backend and that of containers; the others refuse what needs them.
  std::vector<ShownFile> files;
  // In the layer of filesystem.scratch that covers the directory, as if the command had written them: path and contents. By the
  // native backend; where there is no layer they are left out.
  std::vector<std::pair<std::string, std::string>> laid;
  std::vector<std::string> replaced;  // files that a laid one stands for: seen as empty ones, which nobody may open, where it is
};

struct Prepared {
  launch::Plan plan;
  EnforcementReport report;
  std::shared_ptr<const broker::FileRules> file_rules;  // for the broker; none: no file call is intercepted
  std::vector<broker::ListedSocket> sockets;            // of the host, opened by path; for the broker
  std::optional<broker::WorkspaceOverlay> overlay;      // a transaction; for the broker
  std::vector<std::string> warnings;                    // what the policy grants that is more than it looks like, a sentence each
  std::vector<std::string> remove_after;  // directories made for this run: whoever runs the plan removes them at its end
  std::shared_ptr<void> held;             // let go of when the sandbox has ended
  std::vector<std::string> scratch;       // places whose layers the sandbox gives, in the order of Sandbox::take_exported()
  std::vector<std::string>
      seen;                     // hidden paths: in the directory that take_exported() has last, a link each (runtime/used_names.h)
  bool sockets_held = false;    // BrokerOptions::sockets_held
  bool own_network = false;     // its own network namespace
  bool pid_namespace = false;   // pid 1's death ends the tree
  bool user_namespace = false;  // RLIMIT_NPROC counts only processes inside
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const noexcept = 0;
  // Errors: kInvalidArgument, the policy is contradictory here; kFailedPrecondition, this machine lacks what the backend needs;
  // kUnimplemented, a part of the policy that no backend here serves, by name. Does not judge the report: runtime/enforcement does.
  virtual Result<Prepared> prepare(const Policy& policy, const Workplace& place) = 0;
};

}  // namespace belljar::backend
