#include "launch/become_command.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "launch/child.h"
#include "launch/raw.h"
#include "launch/wire.h"

namespace belljar::launch {
namespace {

[[noreturn]] void fail(volatile SpawnFailure& failure, long error, std::int32_t where) noexcept {
  failure.errnum = static_cast<int>(-error);
  failure.where = where;
  ::_exit(127);
}

// A file of that name is there, whatever else may be done with it. By statfs(2), which asks for search permission on the way and
// nothing more: stat, access and open may be notified (`belljar learn`), and before the start is told nobody answers those.
bool exists(const char* path) noexcept {
  struct statfs facts;
  return raw_call(SYS_statfs, as_long(path), as_long(&facts)) == 0;
}

void set_stdio(const PreparedExec& exec, int pty_slave, volatile SpawnFailure& failure) noexcept {
  for (int fd = 0; fd < 3; ++fd) {  // sources are all above 9: no order to mind
    // On the terminal, one that the caller sent elsewhere (`2>log`) stays there.
    const int source = exec.stdio[fd] < 0 && exec.pty ? pty_slave : exec.stdio[fd];
    if (source < 0) continue;
    if (const long status = raw_call(SYS_dup3, source, fd, 0); status < 0) fail(failure, status, wire::kStdio);
  }
  if (exec.pty) {
    const pid_t self = static_cast<pid_t>(raw_call(SYS_getpid));
    const long status = raw_call(SYS_ioctl, pty_slave, TIOCSPGRP, as_long(&self));  // SIGTTOU is blocked still
    if (status < 0) fail(failure, status, wire::kStdio);
  }
  if (exec.own_terminal) {
    if (const long status = raw_call(SYS_ioctl, 0, TIOCSCTTY, 0); status < 0) fail(failure, status, wire::kStdio);
  }
}

void reset_signals() noexcept {
  const struct {
    long handler, flags, restorer;
    std::uint64_t mask;
  } plain{};  // the kernel's own sigaction: SIG_DFL
  const std::uint64_t none = 0;
  raw_call(SYS_rt_sigaction, SIGPIPE, as_long(&plain), 0, sizeof none);
  raw_call(SYS_rt_sigprocmask, SIG_SETMASK, as_long(&none), 0, sizeof none);
}

bool has_slash(const char* name) noexcept {
  while (*name != '\0' && *name != '/') ++name;
  return *name == '/';
}

}  // namespace

// Between the filter and execve: no call here may be one that a filter notifies (tests/kernel/seccomp_test.cc holds the list).
void become_command(const PreparedExec& exec, int pty_slave, volatile SpawnFailure& failure) noexcept {
  // A process group of its own, so that a signal reaches the whole job. On the terminal it stays in init's session: were it the
  // leader of one, its group would be orphaned, and the kernel would drop the SIGTSTP of a typed ^Z (setpgid(2)).
  if (exec.pty) raw_call(SYS_setpgid, 0, 0);
  else raw_call(SYS_setsid);
  set_stdio(exec, pty_slave, failure);
  if (const long status = raw_call(SYS_chdir, as_long(exec.cwd)); status < 0) fail(failure, status, wire::kChdir);
  if (exec.adopt) raw_call(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);  // survives execve, prctl(2)
  reset_signals();
  long error = -ENOENT;
  for (char* const* path = exec.paths; *path != nullptr; ++path) {
    const long status = raw_call(SYS_execve, as_long(*path), as_long(static_cast<const void*>(exec.argv)),
                                 as_long(static_cast<const void*>(exec.envp)));
    // As execvp(3): a candidate that may not be run is remembered, the search goes on. One in a directory that may not be searched
    // was never found, unless it was named with its directory.
    if (status == -EACCES) {
      if (has_slash(exec.argv[0]) || exists(*path)) error = -EACCES;
    } else if (status != -ENOENT && status != -ENOTDIR) {
      error = status;
      break;
    }
  }
  fail(failure, error, wire::kExecve);
}

}  // namespace belljar::launch
