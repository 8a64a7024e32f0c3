// getsockname(2) of a socket that was bound here: the path that its program gave, where the kernel has the last component. Servers
// tell their clients where to connect by it (Python's multiprocessing does). Every other socket's call goes on by itself.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "broker/handlers.h"
#include "broker/sockaddr.h"

namespace belljar::broker {
namespace {

std::optional<std::string> said(const Context& context, int socket) {
  struct stat status{};
  Address address;
  address.length = sizeof(sockaddr_storage);
  if (::fstat(socket, &status) != 0 ||
      ::getsockname(socket, reinterpret_cast<sockaddr*>(address.bytes.data()), &address.length) != 0)
    return std::nullopt;
  const UnixName name = decode_unix(address);
  if (name.kind != UnixName::Kind::kPath) return std::nullopt;
  return context.bound.find(status.st_ino, name.name);
}

// As the kernel: what fits, and the whole length, move_addr_to_user in net/socket.c.
int give(const Context& context, const Call& call, const Caller& caller, const std::string& path) {
  auto memory = caller.open_memory();
  if (!memory) return -memory.error();
  // The descriptor is of the caller's memory, or of nobody's whom we know: from here on its number does not matter.
  if (!still_waiting(context.listener.get(), call.id)) return -ESRCH;
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), std::min(path.size(), sizeof name.sun_path));
  const auto length = static_cast<int>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  int room = 0;
  if (const auto read = caller.read(call.args[2], std::as_writable_bytes(std::span(&room, 1))); !read) return -read.error();
  if (room < 0) return -EINVAL;
  const auto size = static_cast<std::size_t>(std::min({room, length, static_cast<int>(sizeof name)}));
  if (!write_memory(memory->get(), call.args[1], std::as_bytes(std::span(&name, 1)).first(size))) return -EFAULT;
  return write_memory(memory->get(), call.args[2], std::as_bytes(std::span(&length, 1))) ? 0 : -EFAULT;
}

}  // namespace

void handle_getsockname(Context& context, const Call& call) {
  if (context.bound.empty()) return let_continue(context.listener.get(), call.id);
  Caller caller(call.tid);
  const auto socket = caller.duplicate(static_cast<int>(call.args[0]));
  const auto path = socket ? said(context, socket->get()) : std::nullopt;
  if (!path) return let_continue(context.listener.get(), call.id);
  answer(context.listener.get(), call.id, give(context, call, caller, *path));
}

}  // namespace belljar::broker
