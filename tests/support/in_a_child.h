// What a forked child of the test does, which is what a host program that forks may do.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::test {

#ifdef __SANITIZE_ADDRESS__
// That of g++ 12 does not hold its allocator's locks over a fork: one that another thread held is held for ever in the child.
constexpr int kTries = 3;
#else
constexpr int kTries = 1;
#endif

// The exit code of `act` in a forked child, or minus the signal that ended it; SIGALRM where it hangs.
inline int in_a_child(const std::function<int()>& act, int tries = kTries) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::_exit(act());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (tries > 1 && WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return in_a_child(act, tries - 1);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// As all is that belongs to the process a child was forked from.
template <class T>
bool is_refused(const Result<T>& result) {
  return !result && result.error().code() == Code::kFailedPrecondition;
}

}  // namespace belljar::test
