// A descriptor is handed over by two wake-ups: the kernel's in the caller, which takes it, and the one back. Neither heeds
// SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (seccomp_handle_addfd() calls complete()), so each goes to an idle processor where there is
// one, and an idle processor of a virtual machine takes 30 to 60 us to wake. While a OneProcessor lives, the calling thread and the
// caller may run on one processor only, so both wake-ups are switches on it: 140 us for a file that tar makes became 70.
//
// The caller waits for its answer meanwhile, so it can't see its own mask; another thread inside may (sched_getaffinity(2)), and
// what it sets in these microseconds is lost. The mask is put back before the answer. Where a mask may not be set nothing happens.
// Its number is checked right before it is used (still_waiting()); there is no such call by pidfd. One thread.
//
// Four changes of a mask cost 3.8 us, ours 2.7 of it. So this thread stays where it is between the opens of one caller that come
// one upon the other: the kernel wakes it where that caller runs anyway, and 32 opens later it goes where that is, if it has moved.
#pragma once

#include <sched.h>

#include "broker/notification.h"

namespace belljar::broker {

class OneProcessor {
 public:
  OneProcessor(int listener, const Call& call) noexcept;
  ~OneProcessor();
  OneProcessor(const OneProcessor&) = delete;
  OneProcessor& operator=(const OneProcessor&) = delete;

  bool held() const noexcept { return held_; }

  // For each call that this thread received: it may run everywhere again, unless it stayed for the sake of that very caller.
  static void begin_call(const Call& call) noexcept;
  // It may run everywhere again: before a thread is made, which would inherit the mask.
  static void leave() noexcept;

 private:
  bool hold() noexcept;

  const int listener_;
  const Call& call_;
  cpu_set_t theirs_{};
  const bool held_;
};

}  // namespace belljar::broker
