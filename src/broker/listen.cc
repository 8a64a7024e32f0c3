// listen(2): notes the inode that an AF_UNIX socket is bound to, then lets the call run. See broker.h for why that is enough.
//
// Where no port may be taken nothing goes on by itself, since the caller could put another socket at the number: what was looked at
// is what listens.
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "base/format.h"
#include "broker/as_caller.h"
#include "broker/handlers.h"
#include "broker/local_ports.h"
#include "broker/socket_args.h"
#include "kernel/seccomp.h"

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

constexpr int kMostInspections = 100;
constexpr std::chrono::milliseconds kBetweenInspections{10};

// We lack a descriptor or memory, which another call may give back in a moment. What listened unseen would be refused to its own
// clients.
bool is_short(int status) noexcept { return status == -EMFILE || status == -ENFILE || status == -ENOMEM; }

// `inspect` gives 0 or -errno.
template <class Inspect>
int inspect_in_time(Inspect inspect) {
  int status = inspect();
  for (int inspections = 1; is_short(status) && inspections < kMostInspections; ++inspections) {
    std::this_thread::sleep_for(kBetweenInspections);
    status = inspect();
  }
  return status;
}

// -ENOBUFS: too many. Else 0, -errno of the inspection.
int note_by_file(Context& context, int socket) {
  UniqueFd file(::ioctl(socket, SIOCUNIXFILE, 0));
  if (!file.valid()) return errno == EPERM ? -EPERM : is_short(-errno) ? -errno : 0;  // ENOENT: an abstract name, or none
  return context.own.note(std::move(file)) ? 0 : -ENOBUFS;
}

// Without CAP_NET_ADMIN over the network.
int note_by_diag(Context& context, int socket) {
  kernel::UnixSocketId id;
  int status = kernel::identify_unix_socket(socket, id);
  if (status == 0) status = context.own.note(id);
  if (status == -ENOBUFS || is_short(status)) return status;
  if (status != 0 && status != -ENODATA) context.cannot_note = true;
  return 0;
}

int refuse_unseen(Context& context, const Caller& caller) {
  return context.refuse(caller, "unix-listen", "", ENOBUFS,
                        "sockets that belljar has a descriptor for: raise `ulimit -n` where it runs");
}

// 0, or the errno that listen is to return.
int note(Context& context, const Caller& caller, int socket) {
  const kernel::UnixSockets sockets = context.options.filter.unix_sockets;
  if (sockets == kernel::UnixSockets::kAll || sockets == kernel::UnixSockets::kAnyJudged) return 0;  // no connect asks whose it is
  if (socket_option(socket, SO_DOMAIN) != AF_UNIX || has_peer(socket) || from_outside(context, socket)) return 0;
  const int status = inspect_in_time([&] {
    const int by_file = note_by_file(context, socket);
    return by_file == -EPERM ? note_by_diag(context, socket) : by_file;
  });
  if (status == 0) return 0;
  if (is_short(status)) return refuse_unseen(context, caller);
  return context.refuse(caller, "unix-listen", "", ENOBUFS,
                        format("up to {} listening AF_UNIX sockets at one time", context.options.max_own_sockets));
}

int listen_here(Context& context, const Caller& caller, const Call& call, int socket) {
  if (takes_port(socket)) {
    // Handed in as it listens: nothing more is opened, and its backlog stays.
    if (socket_option(socket, SO_ACCEPTCONN) == 1) return 0;
    return refuse_port(context, caller, "listen", address_of(socket));
  }
  if (const int status = note(context, caller, socket); status != 0) return status;
  const AsCaller permissions(context.options.uid);  // SO_PEERCRED of clients: unix_listen, init_peercred
  if (!permissions.ok()) return -EACCES;
  return ::listen(socket, static_cast<int>(call.args[1])) == 0 ? 0 : -errno;
}

int judge(Context& context, const Call& call) {
  Caller caller(call.tid);
  OrErrno<UniqueFd> socket = errno_is(EBADF);
  (void)inspect_in_time([&] {
    socket = caller.duplicate(static_cast<int>(call.args[0]));
    return socket ? 0 : -socket.error();
  });
  const bool held = context.options.ports_refused;
  if (!socket && !held && is_short(-socket.error())) return refuse_unseen(context, caller);
  if (!socket) return held ? -socket.error() : kGoOn;
  if (!still_waiting(context.listener.get(), call.id)) return held ? -ESRCH : kGoOn;
  if (held) return listen_here(context, caller, call, socket->get());
  const int status = note(context, caller, socket->get());
  return status == 0 ? kGoOn : status;
}

}  // namespace

void handle_listen(Context& context, const Call& call) {
  const int status = judge(context, call);
  if (status == kGoOn) return let_continue(context.listener.get(), call.id);
  answer(context.listener.get(), call.id, status);
}

}  // namespace belljar::broker
