// What the umask of a caller is, without reading its status (10 us) for every file that it makes.
//
// The filter notifies umask(2), which then goes on by itself: nothing depends on its answer. As long as nobody has called it, all
// processes of the sandbox have the mask they were born with. After a call each task's mask is read once and kept until the next
// call of anybody. Threads of one process share a mask, so for a moment after a call nothing is kept: the call that was let go on
// may not have happened yet. Safe from any thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <unordered_map>

#include "broker/caller.h"

namespace belljar::broker {

class Umasks {
 public:
  mode_t of(const Caller& caller);
  // Somebody is about to change a mask.
  void changes();

 private:
  using Clock = std::chrono::steady_clock;
  struct Known {
    ino_t identity;
    mode_t mask;
  };
  std::atomic<int> initial_ = -1;  // -1: not read yet; -2: somebody changed a mask
  std::mutex mutex_;               // guards what follows
  Clock::time_point changed_{};
  std::unordered_map<pid_t, Known> known_;
};

}  // namespace belljar::broker
