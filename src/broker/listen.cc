// listen(2): notes the inode that an AF_UNIX socket is bound to, then lets the call run. See broker.h for why that is enough.
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/format.h"
#include "broker/handlers.h"
#include "broker/socket_args.h"

// linux/un.h, which cannot stand beside sys/un.h.
#ifndef SIOCUNIXFILE
#define SIOCUNIXFILE (SIOCPROTOPRIVATE + 0)
#endif

namespace belljar::broker {
namespace {

// An accepted socket carries its listener's inode (unix_stream_connect copies the path), and a descriptor that was handed to the
// command may be one of a host service. It keeps its peer for life, which is how we know it.
bool has_peer(int socket) noexcept {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  return ::getpeername(socket, reinterpret_cast<sockaddr*>(&name), &size) == 0 || errno != ENOTCONN;
}

bool from_outside(const Context& context, int socket) noexcept {
  if (!context.options.own_network_namespace || context.host_netns == 0) return false;
  std::uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  return ::getsockopt(socket, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size) == 0 && cookie == context.host_netns;
}

// Without CAP_NET_ADMIN over the network. False: too many.
bool note_by_diag(Context& context, int socket) {
  kernel::UnixSocketId id;
  int status = kernel::identify_unix_socket(socket, id);
  if (status == 0) status = context.own.note(id);
  if (status != 0 && status != -ENODATA && status != -ENOBUFS) context.cannot_note = true;
  return status != -ENOBUFS;
}

// 0, or the errno that listen is to return.
int note(Context& context, const Call& call) {
  Caller caller(call.tid);
  const auto socket = caller.duplicate(static_cast<int>(call.args[0]));
  if (!socket || !still_waiting(context.listener.get(), call.id)) return 0;
  if (socket_option(socket->get(), SO_DOMAIN) != AF_UNIX || has_peer(socket->get()) || from_outside(context, socket->get()))
    return 0;
  UniqueFd file(::ioctl(socket->get(), SIOCUNIXFILE, 0));
  if (!file.valid() && errno != EPERM) return 0;  // ENOENT: an abstract name, or none
  if (file.valid() ? context.own.note(std::move(file)) : note_by_diag(context, socket->get())) return 0;
  return context.refuse(caller, "unix-listen", "", ENOBUFS,
                        format("up to {} listening AF_UNIX sockets at one time", context.options.max_own_sockets));
}

}  // namespace

void handle_listen(Context& context, const Call& call) {
  if (const int status = note(context, call); status != 0) return answer(context.listener.get(), call.id, status);
  let_continue(context.listener.get(), call.id);
}

}  // namespace belljar::broker
