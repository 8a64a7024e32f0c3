// Processes and their helpers by raw system calls (base/raw_call.h).
#pragma once

#include <errno.h>
#include <linux/futex.h>
#include <linux/sched.h>

#include <atomic>

#include "base/raw_call.h"

namespace belljar::launch {

// The pid of a child on a copy of this memory; in it 0; or -errno. An outer filter cannot look behind clone3's pointer and says so
// by ENOSYS; clone's flags it can judge. Without CLONE_VM.
inline long raw_clone(const clone_args& arguments) noexcept {
  const long pid = raw_call(SYS_clone3, as_long(&arguments), sizeof arguments);
  if (pid != -ENOSYS || (arguments.flags & CLONE_INTO_CGROUP) != 0) return pid;
  return raw_call(SYS_clone, static_cast<long>(arguments.flags), 0, static_cast<long>(arguments.pidfd));
}

// The status of a helper: kBusy until it ends, then 0 or -errno.
class HelperStatus {
 public:
  static constexpr int kBusy = 1;

  void begin() noexcept { value_.store(kBusy, std::memory_order_relaxed); }
  void end(int status) noexcept {  // by the helper
    value_.store(status, std::memory_order_release);
    raw_call(SYS_futex, as_long(&value_), FUTEX_WAKE, 1);
  }
  int await() noexcept {
    while (value_.load(std::memory_order_acquire) == kBusy) raw_call(SYS_futex, as_long(&value_), FUTEX_WAIT, kBusy);
    return value_.load(std::memory_order_acquire);
  }

 private:
  std::atomic<int> value_{kBusy};
};

}  // namespace belljar::launch
