// Blocks a signal that only repeats what errno says: SIGPIPE, SIGXFSZ.
#pragma once

#include <signal.h>

#include <cerrno>
#include <ctime>

namespace belljar {

// Blocked in this thread while the object lives; a signal that came meanwhile is consumed, unless one was pending before. A write
// of a library must not end the program that it is in.
class HeldSignal {
 public:
  explicit HeldSignal(int number) noexcept {
    sigset_t pending;
    sigemptyset(&pending);
    ::sigpending(&pending);
    was_pending_ = sigismember(&pending, number) == 1;
    sigemptyset(&held_);
    sigaddset(&held_, number);
    ::pthread_sigmask(SIG_BLOCK, &held_, &before_);
  }
  ~HeldSignal() {
    const int error = errno;
    const timespec now{};
    if (!was_pending_) ::sigtimedwait(&held_, nullptr, &now);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  HeldSignal(const HeldSignal&) = delete;
  HeldSignal& operator=(const HeldSignal&) = delete;

 private:
  sigset_t held_{}, before_{};
  bool was_pending_ = false;
};

}  // namespace belljar
