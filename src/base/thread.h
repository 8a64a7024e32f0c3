#pragma once

#include <signal.h>

#include <system_error>
#include <thread>
#include <utility>

#include "belljar/error.h"
#include "belljar/result.h"

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

inline Error no_thread(const std::system_error& failed, const char* what) {
  return Error(Code::kResourceExhausted, what)
      .sys(failed.code().value(), "pthread_create")
      .next("raise the limit of processes (`ulimit -u`), or run fewer at once");
}

// The same, with an Error where none is to be had (kResourceExhausted). `what`: what cannot be done without it.
template <class Work>
Result<std::thread> open_thread(Work work, const char* what) {
  try {
    return start_thread(std::move(work));
  } catch (const std::system_error& failed) {
    return no_thread(failed, what);
  }
}

}  // namespace belljar
