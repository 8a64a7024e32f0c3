// getsockopt(2) of SO_PEERCRED and SO_PEERPIDFD: of a connection that was made here, who asked for it; the kernel would name us.
// Every other socket's call goes on by itself. The answer depends on the socket that was looked at and on nothing that the caller
// could exchange, and nobody's rights depend on the answer but inside.
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <span>

#include "broker/handlers.h"
#include "broker/peers.h"
#include "kernel/seccomp.h"

namespace belljar::broker {
namespace {

struct BrokeredPeer {
  ucred kernel_says{};  // our pid, or who makes sockets for us; the ids are the client's, since we connect as it
  Peers::Process by;
};

std::optional<BrokeredPeer> made_here(const Context& context, int socket) {
  BrokeredPeer made;
  socklen_t size = sizeof made.kernel_says;
  // Processes in pid namespaces of their own have a number in each: left to the kernel, which says 0.
  if (!context.options.one_root || ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &made.kernel_says, &size) != 0 ||
      !context.peers.is_ours(made.kernel_says.pid))
    return std::nullopt;
  const auto by = context.peers.find(socket);
  if (!by || by->inside == 0) return std::nullopt;
  made.by = *by;
  return made;
}

// As sk_getsockopt() of net/core/sock.c: what fits, and how much that was.
int write_option(const Context& context, const Call& call, const Caller& caller, std::span<const std::byte> value) {
  auto memory = caller.open_memory();
  if (!memory) return -memory.error();
  // The descriptor is of the caller's memory, or of nobody's whom we know: from here on its number does not matter.
  if (!still_waiting(context.listener.get(), call.id)) return -ESRCH;
  int room = 0;
  if (const auto read = caller.read(call.args[4], std::as_writable_bytes(std::span(&room, 1))); !read) return -read.error();
  if (room < 0) return -EINVAL;
  const int size = std::min(room, static_cast<int>(value.size()));
  if (!write_memory(memory->get(), call.args[3], value.first(static_cast<std::size_t>(size)))) return -EFAULT;
  return write_memory(memory->get(), call.args[4], std::as_bytes(std::span(&size, 1))) ? 0 : -EFAULT;
}

int give_credentials(const Context& context, const Call& call, const Caller& caller, const BrokeredPeer& made) {
  const ucred peer{
      .pid = made.by.inside, .uid = caller.uid_inside(made.kernel_says.uid), .gid = caller.gid_inside(made.kernel_says.gid)};
  return write_option(context, call, caller, std::as_bytes(std::span(&peer, 1)));
}

// The client may have ended, and its number be another's.
int give_pidfd(const Context& context, const Call& call, const Caller& caller, const BrokeredPeer& made) {
  UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, made.by.ours, 0)));
  if (!process.valid() || Caller(made.by.ours).identity() != made.by.identity) return -ESRCH;
  const int number = add_fd(context.listener.get(), call.id, process.get(), true);
  return number < 0 ? number : write_option(context, call, caller, std::as_bytes(std::span(&number, 1)));
}

}  // namespace

void handle_getsockopt(Context& context, const Call& call) {
  const auto level = static_cast<int>(call.args[1]), name = static_cast<int>(call.args[2]);
  if (level != SOL_SOCKET || (name != SO_PEERCRED && name != kernel::kPeerPidfd))
    return let_continue(context.listener.get(), call.id);
  Caller caller(call.tid);
  const auto socket = caller.duplicate(static_cast<int>(call.args[0]));
  const auto made = socket ? made_here(context, socket->get()) : std::nullopt;
  if (!made) return let_continue(context.listener.get(), call.id);
  answer(context.listener.get(), call.id,
         name == SO_PEERCRED ? give_credentials(context, call, caller, *made) : give_pidfd(context, call, caller, *made));
}

}  // namespace belljar::broker
