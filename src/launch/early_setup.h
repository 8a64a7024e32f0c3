// Root makes these on another processor while the plan is still being made: the network, IPC and UTS namespaces (0.6 ms in the
// kernel), the user namespace of the command, and the stage (stage.h). They are made as real root in the caller's namespaces, as
// the child would make them. An ordinary user cannot do this: their namespaces belong to a user namespace that is made with the
// child.
#pragma once

#include <sys/types.h>

#include <memory>
#include <span>
#include <string>

#include "base/unique_fd.h"

namespace belljar::launch {

struct MountOp;

struct EarlySetupOptions {
  bool network = false;  // with its loopback raised
  uid_t inside_uid = 0, outside_uid = 0;
  gid_t inside_gid = 0, outside_gid = 0;
};

// Owns a thread, which ends when it has done what it was given; the destructor waits for it. One thread at a time.
class EarlySetup {
 public:
  // nullptr: no thread is free. Whatever is missing then, or not valid below, the child makes itself.
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
    UniqueFd stage;  // a detached mount with `rest` done
    UniqueFd names;  // a pipe: an int, 0 or -errno, when the names are done
  };
  // Waits until all but the names is there. For one sandbox: nothing is left for a second. `stage` must stay open until end().
  Resources take();
  void end();  // waits for the names

 private:
  EarlySetup() = default;
  struct Work;
  std::unique_ptr<Work> work_;
};

}  // namespace belljar::launch
