// What runs between clone3 and execve. Everything here is noexcept, allocates nothing, formats nothing and ends in _exit: the child
// of a threaded process may have inherited a malloc lock that nobody will release.
#pragma once

#include <span>
#include <string_view>

#include "launch/plan.h"

namespace belljar::launch {

// C strings of one exec, prepared by the parent.
struct PreparedExec {
  std::uint32_t id = 0;
  const char* cwd = nullptr;
  char* const* paths = nullptr;  // candidates for execve, NULL-terminated
  char* const* argv = nullptr;
  char* const* envp = nullptr;
  int stdio[3] = {-1, -1, -1};
  bool pty = false, own_terminal = false, adopt = false;
};

// The child's whole knowledge; made by the parent before clone3.
struct ChildContext {
  const Plan* plan = nullptr;
  PreparedExec* first = nullptr;  // nullptr: serve only
  bool one_shot = true;
  bool time_steps = false;
  int control = -1;
  int front = -1;  // a pidfd of the process that starts it
  // made beforehand (early_setup.h)
  int network = -1, ipc = -1, uts = -1, users = -1;
  int stage = -1, names = -1;
  bool entered =
      false;  // all namespaces but that of processes were an ordinary user's EarlySetup's, and are ours; its stage lacks the rest
  int maps = -1;  // its own memory's map, open from before /proc is another; -1: it keeps what it inherited (inherited_memory.cc)
  int children = -1;     // a subreaper's own list of children, open from before the filter: nobody may answer opens at the end
  int* slots = nullptr;  // Plan::slots entries
  char* const* envp = nullptr;  // Plan::env as C strings, for exec requests that bring none
  // results of the steps
  int failed_op = -1;
  int listener = -1;
  int pty_master = -1, pty_slave = -1;
  int sockets[kMaxInnerSockets]{};           // one for each of Plan::sockets; -1 none
  int maker = -1, pairs = -1;                // our ends of InnerSocket::Kind::kMaker; `pairs`: of Purpose::kPairs
  int routes_errno = 0, redirect_errno = 0;  // why Plan::routes and Plan::redirect do not hold; 0: they do
  int exported[kMaxExported]{};              // of kExport, the first `given_count`
  int exported_count = 0;
  int root = -1;                   // "/" as the sandbox sees it, when it serves only
  bool own_pid_namespace = false;  // its end ends the tree
  int skipped = 0;
  int skipped_op[48]{}, skipped_errno[48]{};
};

// What the start goes on without, for the report: an index into Plan::mounts or kSkippedKeyring.
void note_skipped(ChildContext& context, int op, int error) noexcept;  // child.cc

using StepFunction = int (*)(ChildContext&) noexcept;  // 0 or -errno

struct Step {
  std::string_view name;
  StepFunction run;
  std::string_view doing;  // for the error sentence: "cannot <doing>"
};

// The order of a start; see child.cc for why it is this one.
std::span<const Step> steps() noexcept;

// Runs the steps, then serves as pid 1 until the end. Does not return.
[[noreturn]] void enter_sandbox(ChildContext& context) noexcept;

// child.cc; until `fd` can be read, -1: not at all. Ends this process where the front is gone: while we hold both ends of what it
// would have written to, nothing else tells of that.
void await_or_end(const ChildContext& context, int fd) noexcept;

void wipe_arguments() noexcept;  // child.cc; arguments and environment of this process, as the kernel shows them
int raise_loopback() noexcept;   // network.cc; of the calling thread's namespace, 0 or -errno
// child.cc; maps one id of each kind into the user namespace that the caller is in; 0 or -errno, libc's errno is left alone.
int map_self(uid_t inside_uid, uid_t outside_uid, gid_t inside_gid, gid_t outside_gid) noexcept;

// steps implemented in their own files
int begin_network(ChildContext& context) noexcept;  // network.cc: these four
int join_network(ChildContext& context) noexcept;
int end_helper(ChildContext& context) noexcept;
void abandon_network(ChildContext& context) noexcept;  // for a start that ends before it took it
int open_sockets(ChildContext& context) noexcept;
int build_tree(ChildContext& context) noexcept;                    // mounts.cc
int attach_mount(int mount, const char* target) noexcept;          // mount stays open
int set_stage(ChildContext& context, const MountOp& op) noexcept;  // stage.cc: these three
int await_names(ChildContext& context) noexcept;
int end_names(ChildContext& context) noexcept;
int restrict_paths(ChildContext& context) noexcept;          // landlock.cc
int open_maps(ChildContext& context) noexcept;               // inherited_memory.cc: these two
void drop_inherited_memory(ChildContext& context) noexcept;  // nothing of the plan, of `first` and of the heap may be used after it
void sweep_children(int list) noexcept;                      // init.cc; `list`: an open /proc/.../children of ours
[[noreturn]] void serve(ChildContext& context) noexcept;     // init.cc

}  // namespace belljar::launch
