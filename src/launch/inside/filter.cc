#include "launch/inside/filter.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace belljar::inside {

int install_filter(const Setup& setup) {
  if (setup.filter_size == 0) return 0;
  // Needs no capability: the engine has set no_new_privs.
  sock_fprog program{setup.filter_size, setup.filter};
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0 ? 0 : errno;
}

int take_filter(Setup& setup, const char* program, size_t size) {
  const size_t count = size / sizeof(sock_filter);
  if (count == 0 || size % sizeof(sock_filter) != 0 || count > BPF_MAXINSNS) return EINVAL;
  Setup tried;
  tried.filter = static_cast<sock_filter*>(malloc(size));
  if (tried.filter == nullptr) return ENOMEM;
  memcpy(tried.filter, program, size);
  tried.filter_size = static_cast<unsigned short>(count);
  // It is the child's alone, though it shares our memory: filters belong to a thread.
  volatile int failed = 0;
  const pid_t pid = vfork();
  if (pid == 0) {
    failed = install_filter(tried);
    _exit(0);
  }
  int status = 0;
  int result = pid < 0 ? errno : 0;
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (result == 0) result = failed != 0 ? failed : WIFEXITED(status) ? 0 : EINVAL;  // it kills who has it
  if (result != 0) {
    free(tried.filter);
    return result;
  }
  free(setup.filter);
  setup.filter = tried.filter;
  setup.filter_size = tried.filter_size;
  return 0;
}

}  // namespace belljar::inside
