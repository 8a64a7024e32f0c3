// Removes the groups of a sandbox whose front was killed with SIGKILL. Pid 1 dies with its front and the tree with it, but nothing
// inside may remove a cgroup, and the kernel keeps an empty one. So where a group was made, a small process waits beside the front
// for its end: in a session of its own, with all signals blocked and no descriptor but one. Only SIGKILL to it, too, leaves the
// group to the next start's sweep (kernel/cgroup.h).
#pragma once

#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace belljar::launch {

// Move-only; the destructor ends the process and reaps it. One thread at a time.
class Sweeper {
 public:
  Sweeper() = default;  // nobody
  Sweeper(Sweeper&&) noexcept = default;
  Sweeper& operator=(Sweeper&&) noexcept;
  ~Sweeper();

  // Waits from now on, and removes `directories` once this process is gone and they are empty. Best effort: without a process to be
  // had it is nobody.
  static Sweeper start(const std::vector<std::string>& directories) noexcept;

 private:
  void end() noexcept;
  UniqueFd pidfd_;
};

}  // namespace belljar::launch
