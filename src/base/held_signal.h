// A signal that a system call of ours may raise for what its errno says as well: SIGPIPE, SIGXFSZ.
#pragma once

#include <signal.h>

#include <cerrno>
#include <ctime>

namespace belljar {

// Keeps it from this thread for as long as it lives, and takes it away at its end unless it was pending before. What a library
// writes must not end the program it is in.
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
