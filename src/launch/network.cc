// A network namespace of our own, made beside the mount tree.
//
// The kernel takes 0.4 ms for an empty network namespace and its loopback, as long as for the whole tree, and nothing in the tree
// needs it. So a helper process makes it on another processor meanwhile and the child takes it over with setns(2). The helper
// shares memory and descriptors with the child, holds the same privileges, listens to nobody, and is killed before the child gives
// its own away and gone before anything else runs inside. It shares the thread-local storage too: so it calls the kernel without
// libc's errno.
#include <linux/if.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
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

HelperStatus outcome;
int helper_pidfd = -1;
pid_t helper = -1;
long helpers_parent = 0;
alignas(16) char helper_stack[8192];

// The answers are there when write(2) returns: netlink serves its caller before that. 0, or the first error.
int send_batch(const kernel::NetlinkBatch& batch) noexcept {
  const long fd = raw_call(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, batch.protocol);
  if (fd < 0) return static_cast<int>(fd);
  const long sent = raw_call(SYS_write, fd, as_long(batch.bytes.data()), static_cast<long>(batch.bytes.size()));
  struct {
    nlmsghdr header;
    nlmsgerr answer;
    char rest[512];
  } reply;
  int status = sent < 0 ? static_cast<int>(sent) : 0, acks = 0;
  while (status == 0 && acks < batch.acks) {
    const long got = raw_call(SYS_read, fd, as_long(&reply), sizeof reply);
    if (got < static_cast<long>(sizeof reply.header + sizeof reply.answer)) status = got < 0 ? static_cast<int>(got) : -EPROTO;
    else if (reply.header.nlmsg_type == NLMSG_ERROR) status = reply.answer.error, ++acks;
  }
  raw_call(SYS_close, fd);
  return status;
}

const Plan* wishes = nullptr;  // what the namespace shall hold beside its loopback
int routes_status = 0, redirect_status = 0;

void send_wishes() noexcept {
  if (!wishes->routes.bytes.empty()) routes_status = send_batch(wishes->routes);
  if (!wishes->redirect.bytes.empty()) redirect_status = routes_status == 0 ? send_batch(wishes->redirect) : routes_status;
}

int make_network() noexcept {
  long status = raw_call(SYS_unshare, CLONE_NEWNET);
  if (status == 0) status = raise_loopback();
  if (status == 0) send_wishes();
  return static_cast<int>(status);
}

int help(void*) noexcept {
  // Where no pid namespace of its own ends it with the child. That may be gone before this is armed.
  raw_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
  if (raw_call(SYS_getppid) != helpers_parent) raw_call(SYS_exit, 1);
  outcome.end(make_network());
  for (;;) raw_call(SYS_ppoll);  // holds the namespace until it is taken over
}

bool wanted(const ChildContext& context) noexcept {
  return context.plan->loopback_up && (context.plan->clone_flags & CLONE_NEWNET) != 0;
}

}  // namespace

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

int begin_network(ChildContext& context) noexcept {
  if (!wanted(context)) return 0;
  wishes = context.plan;
  routes_status = redirect_status = 0;
  if (context.network >= 0 || context.entered) {
    if (!context.entered && ::setns(context.network, CLONE_NEWNET) < 0) return -errno;
    send_wishes();
    return 0;
  }
  outcome.begin();
  helpers_parent = raw_call(SYS_getpid);
  helper = ::clone(help, helper_stack + sizeof helper_stack, CLONE_VM | CLONE_FILES | CLONE_PIDFD, nullptr, &helper_pidfd);
  return helper < 0 ? make_network() : 0;  // no process free: then one after the other
}

int join_network(ChildContext&) noexcept {
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

void abandon_network(ChildContext& context) noexcept {
  if (helper < 0) return;
  ::kill(helper, SIGKILL);
  (void)end_helper(context);
}

namespace {

int open_datagram(int fd, const sockaddr_in& address) noexcept {
  const int on = 1;
  if (::setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof on) < 0) return -errno;
  return ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0 ? -errno : 0;
}

int open_listener(int fd, const sockaddr_in& address) noexcept {
  constexpr int kBacklog = 4096;
  // A redirected connection holds its port at our end: a server inside may still listen there, socket(7).
  const int on = 1;
  if (::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0) return -errno;
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0) return -errno;
  return ::listen(fd, kBacklog) < 0 ? -errno : 0;
}

int open_maker(int& outer, int& inner) noexcept {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0) return -errno;
  outer = ends[0];
  inner = ends[1];
  return 0;
}

int open_socket(const InnerSocket& wanted, int& fd) noexcept {
  constexpr int kFlags = SOCK_CLOEXEC | SOCK_NONBLOCK;
  if (wanted.kind == InnerSocket::Kind::kDiag)
    return (fd = ::socket(AF_NETLINK, SOCK_RAW | kFlags, NETLINK_SOCK_DIAG)) < 0 ? -errno : 0;
  const bool datagram = wanted.kind == InnerSocket::Kind::kDatagram;
  fd = ::socket(AF_INET, (datagram ? SOCK_DGRAM : SOCK_STREAM) | kFlags, 0);
  if (fd < 0) return -errno;
  const int on = 1;
  if (wanted.transparent && ::setsockopt(fd, IPPROTO_IP, IP_TRANSPARENT, &on, sizeof on) < 0) return -errno;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(wanted.port);
  address.sin_addr.s_addr = htonl(wanted.address);
  return datagram ? open_datagram(fd, address) : open_listener(fd, address);
}

}  // namespace

// Made here and served outside: nothing of ours runs inside, and nothing outside can connect. Before the user namespace of root's
// sandbox, which has no say over this network: ports below 1024 and transparent sockets need the say.
int open_sockets(ChildContext& context) noexcept {
  context.routes_errno = -routes_status;
  context.redirect_errno = -redirect_status;
  for (int& fd : context.sockets) fd = -1;
  std::size_t index = 0;
  for (const InnerSocket& wanted : context.plan->sockets) {
    if (index == kMaxInnerSockets) return -E2BIG;
    int& fd = context.sockets[index++];
    if (wanted.without_redirect && context.redirect_errno == 0) continue;
    const bool maker = wanted.kind == InnerSocket::Kind::kMaker;
    int& inner = wanted.purpose == InnerSocket::Purpose::kPairs ? context.pairs : context.maker;
    if (const int status = maker ? open_maker(fd, inner) : open_socket(wanted, fd); status < 0) return status;
  }
  return 0;
}

}  // namespace belljar::launch
