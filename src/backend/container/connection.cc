#include "backend/container/connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "backend/container/address.h"
#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::backend::container {
namespace {

// 0, or -ETIMEDOUT.
int await(int fd, short events, Connection::Deadline deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Connection::Clock::now()).count();
    if (left <= 0) return -ETIMEDOUT;
    pollfd wait{fd, events, 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(std::min<long>(left, 60'000)));
    if (ready > 0) return 0;
    if (ready < 0 && errno != EINTR) return -errno;
  }
}

Error unreachable(const Address& address, int errnum) {
  const bool denied = errnum == EACCES || errnum == EPERM;
  return Error(denied                ? Code::kPermissionDenied
               : errnum == ETIMEDOUT ? Code::kDeadlineExceeded
                                     : Code::kUnavailable,
               format("cannot reach the container engine at {}", quoted(address.path)))
      .sys(errnum, "connect")
      .next(denied ? "join the group that owns the socket, or use a rootless engine"
                   : "start the engine (Docker or Podman's service), or name its socket");
}

}  // namespace

Result<Connection> Connection::open(const Address& address, Deadline deadline) {
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
    if (const int failed = await(fd_.get(), POLLIN, deadline); failed != 0) return failed;
  }
}

long Connection::write(const char* bytes, std::size_t size, Deadline deadline) {
  for (;;) {
    const ssize_t wrote = ::send(fd_.get(), bytes, size, MSG_NOSIGNAL);
    if (wrote >= 0) return wrote;
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return -errno;
    if (const int failed = await(fd_.get(), POLLOUT, deadline); failed != 0) return failed;
  }
}

}  // namespace belljar::backend::container
