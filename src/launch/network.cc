// A network namespace of our own, made beside the mount tree.
//
// The kernel takes 0.4 ms for an empty network namespace and its loopback, as long as for the whole tree, and nothing in the tree
// needs it. So a helper process makes it on another processor meanwhile and the child takes it over with setns(2). The helper
// shares memory and descriptors with the child, holds the same privileges, listens to nobody, and is killed before the child gives
// its own away and gone before anything else runs inside. It shares the thread-local storage too: so it calls the kernel without
// libc's errno.
#include <linux/futex.h>
#include <linux/if.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "launch/child.h"

namespace belljar::launch {
namespace {

constexpr int kBusy = 1;  // any other value is the result: 0 or -errno

std::atomic<int> outcome{kBusy};
int helper_pidfd = -1;
pid_t helper = -1;
alignas(16) char helper_stack[8192];

// A system call that leaves errno alone.
long kernel(long number, long a = 0, long b = 0, long c = 0, long d = 0) noexcept {
#if defined(__x86_64__)
  register long r10 asm("r10") = d;
  long value = number;
  asm volatile("syscall" : "+a"(value) : "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
  return value;
#elif defined(__aarch64__)
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
#else
#error "write the system call of this processor here"
#endif
}

int raise_loopback() noexcept {
  const long fd = kernel(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return static_cast<int>(fd);
  ifreq request{};
  request.ifr_name[0] = 'l';
  request.ifr_name[1] = 'o';
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  const long status = kernel(SYS_ioctl, fd, SIOCSIFFLAGS, reinterpret_cast<long>(&request));
  kernel(SYS_close, fd);
  return static_cast<int>(status);
}

int make_network() noexcept {
  const long status = kernel(SYS_unshare, CLONE_NEWNET);
  return status < 0 ? static_cast<int>(status) : raise_loopback();
}

int help(void*) noexcept {
  outcome.store(make_network(), std::memory_order_release);
  kernel(SYS_futex, reinterpret_cast<long>(&outcome), FUTEX_WAKE, 1);
  for (;;) kernel(SYS_ppoll, 0, 0, 0, 0);  // holds the namespace until it is taken over
}

bool wanted(const ChildContext& context) noexcept {
  return context.plan->loopback_up && (context.plan->clone_flags & CLONE_NEWNET) != 0;
}

}  // namespace

int begin_network(ChildContext& context) noexcept {
  if (!wanted(context)) return 0;
  outcome.store(kBusy, std::memory_order_relaxed);
  helper = ::clone(help, helper_stack + sizeof helper_stack, CLONE_VM | CLONE_FILES | CLONE_PIDFD, nullptr, &helper_pidfd);
  return helper < 0 ? make_network() : 0;  // no process free: then one after the other
}

int take_network(ChildContext&) noexcept {
  if (helper < 0) return 0;
  while (outcome.load(std::memory_order_acquire) == kBusy) ::syscall(SYS_futex, &outcome, FUTEX_WAIT, kBusy, nullptr);
  int status = outcome.load(std::memory_order_acquire);
  if (status == 0 && ::setns(helper_pidfd, CLONE_NEWNET) < 0) status = -errno;
  ::kill(helper, SIGKILL);
  ::close(helper_pidfd);
  return status;
}

int end_helper(ChildContext&) noexcept {
  if (helper < 0) return 0;
  while (::waitpid(helper, nullptr, __WALL) < 0) {
    if (errno != EINTR) return -errno;
  }
  helper = -1;
  return 0;
}

// Made here and served outside: nothing of ours runs inside, and nothing outside can connect.
int open_sockets(ChildContext& context) noexcept {
  constexpr int kBacklog = 4096;
  std::size_t count = 0;
  for (const InnerSocket& wanted : context.plan->sockets) {
    if (count == kMaxInnerSockets) return -E2BIG;
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -errno;
    context.sockets[count++] = fd;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(wanted.port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0 || ::listen(fd, kBacklog) < 0) return -errno;
  }
  return 0;
}

}  // namespace belljar::launch
