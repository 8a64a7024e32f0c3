#include "broker/socket_args.h"

#include <sys/socket.h>

#include <cerrno>
#include <span>

namespace belljar::broker {

int read_socket_args(Caller& caller, const Call& call, SocketArgs& args) {
  auto socket = caller.duplicate(static_cast<int>(call.args[0]));
  if (!socket) return -socket.error();
  args.socket = *std::move(socket);
  const int length = static_cast<int>(call.args[2]);
  if (length < 0 || static_cast<std::size_t>(length) > args.address.bytes.size()) return -EINVAL;
  args.address.length = static_cast<socklen_t>(length);
  const auto read = caller.read(call.args[1], std::span(args.address.bytes).first(static_cast<std::size_t>(length)));
  return read ? 0 : -read.error();
}

int socket_option(int socket, int name) noexcept {
  int value = -1;
  socklen_t size = sizeof value;
  return ::getsockopt(socket, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

}  // namespace belljar::broker
