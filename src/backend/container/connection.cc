#include "backend/container/connection.h"

#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "backend/container/address.h"
#include "backend/container/tls.h"
#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::backend::container {
namespace {

// 0, -ETIMEDOUT, or -ECANCELED once `cancel` is readable.
int await(int fd, short events, Connection::Deadline deadline, int cancel = -1) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Connection::Clock::now()).count();
    if (left <= 0) return -ETIMEDOUT;
    std::array<pollfd, 2> wait = {{{fd, events, 0}, {cancel, POLLIN, 0}}};
    const int ready = ::poll(wait.data(), wait.size(), static_cast<int>(std::min<long>(left, 60'000)));
    if (ready > 0) return wait[1].revents != 0 ? -ECANCELED : 0;
    if (ready < 0 && errno != EINTR) return -errno;
  }
}

Error unreachable(const Address& address, int errnum) {
  const bool denied = errnum == EACCES || errnum == EPERM;
  return Error(denied                ? Code::kPermissionDenied
               : errnum == ETIMEDOUT ? Code::kDeadlineExceeded
                                     : Code::kUnavailable,
               format("cannot reach the container engine at {}", quoted(to_string(address))))
      .sys(errnum, "connect")
      .next(denied ? "join the group that owns the socket, or use a rootless engine"
                   : "start the engine (Docker or Podman's service), or name its socket");
}

struct FreeAddresses {
  void operator()(addrinfo* list) const noexcept { ::freeaddrinfo(list); }
};

Result<std::unique_ptr<addrinfo, FreeAddresses>> look_up(const Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* list = nullptr;
  const int failed = ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &list);
  if (failed == 0) return std::unique_ptr<addrinfo, FreeAddresses>(list);
  return Error(Code::kUnavailable, format("cannot reach the container engine at {}", quoted(to_string(address))))
      .reason(format("its name: {}", ::gai_strerror(failed)))
      .next("check the name, or give its address");
}

// 0, or an errno.
int connect_to(const addrinfo& where, UniqueFd& fd, Connection::Deadline deadline) {
  fd = UniqueFd(::socket(where.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return errno;
  const int yes = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (::connect(fd.get(), where.ai_addr, where.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  if (const int failed = await(fd.get(), POLLOUT, deadline); failed != 0) return -failed;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

}  // namespace

Result<Connection> Connection::open(const Address& address, Deadline deadline) {
  return address.path.empty() ? open_tcp(address, deadline) : open_unix(address, deadline);
}

Result<Connection> Connection::open_tcp(const Address& address, Deadline deadline) {
  const auto list = BELLJAR_TRY(look_up(address));
  UniqueFd fd;
  int failed = EHOSTUNREACH;
  for (const addrinfo* where = list.get(); where != nullptr && failed != 0; where = where->ai_next)
    failed = connect_to(*where, fd, deadline);
  if (failed != 0) return unreachable(address, failed);
  if (!address.tls) return Connection(std::move(fd));
  UniqueFd plain;
  auto tls = BELLJAR_TRY(TlsPipe::open(std::move(fd), address, deadline, plain));
  return Connection(std::move(plain), std::move(tls));
}

Result<Connection> Connection::open_unix(const Address& address, Deadline deadline) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid())
    return Error(Code::kResourceExhausted, "cannot reach the container engine").sys(errno, "socket").next("close some descriptors");
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, address.path.c_str(), std::min(address.path.size(), sizeof name.sun_path - 1));
  // A full backlog answers EAGAIN and nothing to poll for, unix(7).
  for (;;) {
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0) return Connection(std::move(fd));
    if (errno != EAGAIN && errno != EINTR) return unreachable(address, errno);
    if (Clock::now() >= deadline) return unreachable(address, ETIMEDOUT);
    ::poll(nullptr, 0, 5);
  }
}

long Connection::read(char* bytes, std::size_t size, Deadline deadline) {
  for (;;) {
    const ssize_t got = ::recv(fd_.get(), bytes, size, 0);
    if (got >= 0) return got;
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return -errno;
    if (const int failed = await(fd_.get(), POLLIN, deadline, cancel_.fd()); failed != 0) return failed;
  }
}

long Connection::write(const char* bytes, std::size_t size, Deadline deadline) {
  for (;;) {
    const ssize_t wrote = ::send(fd_.get(), bytes, size, MSG_NOSIGNAL);
    if (wrote >= 0) return wrote;
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return -errno;
    if (const int failed = await(fd_.get(), POLLOUT, deadline, cancel_.fd()); failed != 0) return failed;
  }
}

}  // namespace belljar::backend::container
