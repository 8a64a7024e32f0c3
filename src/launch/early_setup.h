// What is made on another processor while the plan is still being made.
//
// Root: the network, IPC and UTS namespaces (0.6 ms in the kernel), the user namespace of the command, and the stage (stage.h), by
// a thread, as real root in the caller's namespaces, as the child would make them. An ordinary user's namespaces belong to a user
// namespace of their own: there a helper process makes all of them but that of processes, the names on the stage too, and the child
// is cloned from it.
#pragma once

#include <linux/sched.h>
#include <sys/types.h>

#include <memory>
#include <span>
#include <string>

#include "base/unique_fd.h"

namespace belljar::launch {

struct ChildContext;
struct MountOp;

struct EarlySetupOptions {
  bool as_user = false;  // an ordinary user's, all in a user namespace that maps `outside` to `inside`
  bool network = false;  // with its loopback raised
  uid_t inside_uid = 0, outside_uid = 0;
  gid_t inside_gid = 0, outside_gid = 0;
};

// Owns a thread, or a process that shares the caller's memory and descriptors, which ends when it has done what it was given; the
// destructor waits for it. One thread at a time.
class EarlySetup {
 public:
  // nullptr: nobody is free. Whatever is missing then, or not valid below, the child makes itself.
  static std::unique_ptr<EarlySetup> begin(const EarlySetupOptions& options);
  EarlySetup(const EarlySetup&) = delete;
  EarlySetup& operator=(const EarlySetup&) = delete;
  ~EarlySetup();

  // Once each. The operations must live as long as this does.
  void make_names(std::string stage_options, std::span<const MountOp> names);
  void make_rest(std::span<const MountOp> rest);

  // What was made; an invalid descriptor: the child makes it itself.
  struct Resources {
    UniqueFd network, ipc, uts, users;
    UniqueFd stage;        // a detached mount with `rest` done, a user's without it
    UniqueFd names;        // of root's: a pipe: an int, 0 or -errno, when the names are done
    bool entered = false;  // a user's namespaces are made, and clone() makes a child that is in them
  };
  // Waits until all but the names is there. For one sandbox: nothing is left for a second. `stage` must stay open until end().
  Resources take();
  // A child of this process in a user's namespaces, which runs enter_sandbox(context); `arguments` say what else it shall have
  // of its own. Its pid, or -errno: then there is none. Once; by the thread that called begin(), while that lives. All signals must
  // be blocked. The worker is gone when it returns.
  long clone(const clone_args& arguments, ChildContext& context);
  void end();  // waits for the names

 private:
  EarlySetup() = default;
  struct Work;
  std::unique_ptr<Work> work_;
};

}  // namespace belljar::launch
