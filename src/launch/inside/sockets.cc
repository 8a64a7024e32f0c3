#include "launch/inside/sockets.h"

#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "kernel/pass_fds.h"
#include "launch/inside/state.h"
#include "launch/inside/wire.h"

namespace belljar::inside {

namespace {

constexpr int kFlags = SOCK_CLOEXEC | SOCK_NONBLOCK;
constexpr int kBacklog = 4096;

void complain(const char* what) { dprintf(2, "belljar-inside: %s: %s\n", what, strerror(errno)); }

int bind_to(int fd, const SocketRequest& requests) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(requests.port);
  address.sin_addr.s_addr = htonl(requests.address);
  return bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

bool prepare(int fd, const SocketRequest& requests) {
  const int on = 1;
  if (requests.kind == 'D') return setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof on) == 0 && bind_to(fd, requests) == 0;
  if (requests.kind != 'L') return true;
  return setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 && bind_to(fd, requests) == 0 && listen(fd, kBacklog) == 0;
}

// -1, and errno.
int open_socket(const SocketRequest& requests, int& maker) {
  if (requests.kind == 'M') {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | kFlags, 0, ends) != 0) return -1;
    close_fd(maker);
    maker = ends[1];
    return ends[0];
  }
  int fd = requests.kind == 'N' ? socket(AF_NETLINK, SOCK_RAW | kFlags, NETLINK_SOCK_DIAG)
                                : socket(AF_INET, (requests.kind == 'D' ? SOCK_DGRAM : SOCK_STREAM) | kFlags, 0);
  if (fd >= 0 && !prepare(fd, requests)) {
    const int error = errno;
    close_fd(fd);
    errno = error;
  }
  return fd;
}

int call(const char* path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  strncpy(name.sun_path, path, sizeof name.sun_path - 1);
  int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) {
    const int error = errno;
    close_fd(fd);
    errno = error;
  }
  return fd;
}

bool send_with(int to, char* bytes, size_t size, const int* fds, size_t count) {
  return belljar::kernel::send_fds<kMostSockets>(to, bytes, size, fds, count) == static_cast<ssize_t>(size);
}

}  // namespace

bool add_socket(SocketRequests& requests, const char* text) {
  if (requests.count == kMostSockets || strchr("LDNM", text[0]) == nullptr || text[0] == '\0') return false;
  SocketRequest& socket = requests.sockets[requests.count++];
  socket.kind = text[0];
  char* end = nullptr;
  socket.address = static_cast<uint32_t>(strtoul(text + 1, &end, 10));
  if (*end == ':') socket.port = static_cast<uint16_t>(strtoul(end + 1, &end, 10));
  return *end == '\0';
}

bool hand_over_sockets(const char* path, const SocketRequests& requests, int& maker) {
  char errors[4 * kMostSockets];
  int made[kMostSockets];
  size_t count = 0;
  for (size_t i = 0; i < requests.count; ++i) {
    const int fd = open_socket(requests.sockets[i], maker);
    put32(errors + 4 * i, fd < 0 ? static_cast<uint32_t>(errno) : 0);
    if (fd >= 0) made[count++] = fd;
  }
  int door = call(path);
  const bool sent = door >= 0 && send_with(door, errors, 4 * requests.count, made, count);
  if (!sent) complain("cannot pass the sockets of the network out");
  close_fd(door);
  for (size_t i = 0; i < count; ++i) close(made[i]);
  return sent;
}

bool make_socket(int maker) {
  char family = 0;
  const ssize_t size = recv(maker, &family, sizeof family, 0);
  if (size <= 0) return size < 0 && (errno == EAGAIN || errno == EINTR);
  int fd = socket(family == 6 ? AF_INET6 : AF_INET, SOCK_STREAM | kFlags, 0);
  if (!send_with(maker, &family, sizeof family, &fd, fd < 0 ? 0 : 1)) complain("cannot pass a socket out");
  close_fd(fd);
  return true;
}

}  // namespace belljar::inside
