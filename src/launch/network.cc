// A network namespace of our own, made beside the mount tree.
//
// The kernel takes 0.4 ms for an empty network namespace and its loopback, as long as for the whole tree, and nothing in the tree
// needs it. So a helper process makes it on another processor meanwhile and the child takes it over with setns(2). The helper
// shares memory and descriptors with the child, holds the same privileges, listens to nobody, and is killed before the child gives
// its own away and gone before anything else runs inside. It shares the thread-local storage too: so it calls the kernel without
// libc's errno.
#include <linux/if.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "launch/child.h"
#include "launch/raw.h"

namespace belljar::launch {
namespace {

Outcome outcome;
int helper_pidfd = -1;
pid_t helper = -1;
alignas(16) char helper_stack[8192];

int raise_loopback() noexcept {
  const long fd = raw_call(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return static_cast<int>(fd);
  ifreq request{};
  request.ifr_name[0] = 'l';
  request.ifr_name[1] = 'o';
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  const long status = raw_call(SYS_ioctl, fd, SIOCSIFFLAGS, as_long(&request));
  raw_call(SYS_close, fd);
  return static_cast<int>(status);
}

int make_network() noexcept {
  const long status = raw_call(SYS_unshare, CLONE_NEWNET);
  return status < 0 ? static_cast<int>(status) : raise_loopback();
}

int help(void*) noexcept {
  outcome.end(make_network());
  for (;;) raw_call(SYS_ppoll);  // holds the namespace until it is taken over
}

bool wanted(const ChildContext& context) noexcept {
  return context.plan->loopback_up && (context.plan->clone_flags & CLONE_NEWNET) != 0;
}

}  // namespace

int begin_network(ChildContext& context) noexcept {
  if (!wanted(context)) return 0;
  if (context.network >= 0) return ::setns(context.network, CLONE_NEWNET) < 0 ? -errno : 0;
  outcome.begin();
  helper = ::clone(help, helper_stack + sizeof helper_stack, CLONE_VM | CLONE_FILES | CLONE_PIDFD, nullptr, &helper_pidfd);
  return helper < 0 ? make_network() : 0;  // no process free: then one after the other
}

int take_network(ChildContext&) noexcept {
  if (helper < 0) return 0;
  int status = outcome.await();
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
