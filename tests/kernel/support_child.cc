#include "kernel/support_child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <ostream>
#include <vector>

#include "kernel/seccomp.h"

namespace belljar::kernel {
namespace {

// The sixth argument lets it through install_catch_all; without that filter the kernel ignores it.
[[noreturn]] void report(int pipe_fd, long value) {
  raw(SYS_write, pipe_fd, reinterpret_cast<long>(&value), sizeof value, 0, 0, kPass);
  raw(SYS_exit_group, 0, 0, 0, 0, 0, kPass);
  __builtin_trap();
}

}  // namespace

std::ostream& operator<<(std::ostream& stream, const Probe& probe) {
  return probe.signal != 0 ? stream << "signal " << probe.signal : stream << "value " << probe.value;
}

long raw(long number, long a0, long a1, long a2, long a3, long a4, long a5) {
  const long value = syscall(number, a0, a1, a2, a3, a4, a5);
  return value < 0 ? -errno : value;
}

Probe in_child(const std::function<long()>& body) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);  // no core files from the probes that are killed
    report(ends[1], body());
  }
  close(ends[1]);
  Probe probe;
  const bool told = read(ends[0], &probe.value, sizeof probe.value) == static_cast<ssize_t>(sizeof probe.value);
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFSIGNALED(status)) probe.signal = WTERMSIG(status);
  EXPECT_TRUE(told || probe.signal != 0) << "the child said nothing";
  return probe;
}

Probe filtered(const SeccompSpec& spec, const std::function<long()>& body) {
  std::vector<sock_filter> filter = build_filter(spec);
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return in_child([&] {
    const int status = install_filter(program, 0);
    return status < 0 ? -1000000L + status : body();
  });
}

int install_catch_all() noexcept {
  sock_filter code[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, args) + 40},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, kPass},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | kReached},
  };
  return install_filter({std::size(code), code}, 0);
}

}  // namespace belljar::kernel
