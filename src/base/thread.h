#pragma once

#include <signal.h>

#include <thread>
#include <utility>

namespace belljar {

// A thread in which all signals are blocked: they are for the threads of the program that we are in. Throws as std::thread; the
// caller's own mask is as before, also then.
template <class Work>
std::thread start_thread(Work work) {
  struct Blocked {
    Blocked() noexcept {
      sigset_t all;
      sigfillset(&all);
      ::pthread_sigmask(SIG_SETMASK, &all, &old);
    }
    ~Blocked() { ::pthread_sigmask(SIG_SETMASK, &old, nullptr); }
    Blocked(const Blocked&) = delete;
    Blocked& operator=(const Blocked&) = delete;
    sigset_t old;
  };
  const Blocked blocked;
  return std::thread(std::move(work));
}

}  // namespace belljar
