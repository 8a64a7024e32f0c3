// socketpair(2) of AF_UNIX SOCK_DGRAM, and of SOCK_RAW, which is the same there. A datagram end sends to whatever path a sendmsg
// names, whoever it is connected to (unix_dgram_sendmsg of net/unix/af_unix.c), and no filter, mount or Landlock right sees that.
// So what is given is a pair of SOCK_SEQPACKET, with the same messages and the same bounds: its ends are connected for life and the
// kernel ignores an address there (unix_seqpacket_sendmsg). The README says what differs.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <span>

#include "broker/as_caller.h"
#include "broker/handlers.h"

namespace belljar::broker {
namespace {

constexpr int kPatienceMs = 10'000;  // pid 1 may be busy with a start

struct Pair {
  UniqueFd ends[2];
};

// 0 or -errno. Made inside: a socket belongs to its maker's network namespace, and ours shows the host's interfaces.
int ask_for_pair(Context& context, Pair& pair) {
  const int maker = context.pairs.get();
  const std::scoped_lock lock(context.pairs_mutex);
  char what = 'p';
  if (::send(maker, &what, sizeof what, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof what) return -EACCES;
  pollfd answered{.fd = maker, .events = POLLIN, .revents = 0};
  int ready = 0;
  while ((ready = ::poll(&answered, 1, kPatienceMs)) < 0 && errno == EINTR) {
  }
  if (ready <= 0) return -ENFILE;
  iovec part{&what, sizeof what};
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (::recvmsg(maker, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) <= 0) return -EACCES;
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_len != CMSG_LEN(2 * sizeof(int))) return -ENFILE;
  int fds[2];
  std::memcpy(fds, CMSG_DATA(header), sizeof fds);
  for (int i = 0; i < 2; ++i) pair.ends[i] = UniqueFd(fds[i]);
  ucred maker_is{};
  socklen_t size = sizeof maker_is;
  if (::getsockopt(fds[0], SOL_SOCKET, SO_PEERCRED, &maker_is, &size) == 0) context.peers.set_maker(maker_is.pid);
  return 0;
}

int make_pair(Context& context, Pair& pair) {
  if (context.options.own_network_namespace) return context.pairs.valid() ? ask_for_pair(context, pair) : -EACCES;
  int fds[2];
  const AsCaller permissions(context.options.uid);
  if (!permissions.ok()) return -EACCES;
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) return -errno;
  for (int i = 0; i < 2; ++i) pair.ends[i] = UniqueFd(fds[i]);
  return 0;
}

void note_maker(Context& context, const Caller& caller, const Pair& pair) {
  const auto process = Peers::Process::of(caller);
  for (const UniqueFd& end : pair.ends) {
    struct stat socket{};
    if (::fstat(end.get(), &socket) == 0) context.peers.note(socket.st_ino, process);
  }
}

int perform(Context& context, const Call& call) {
  const auto type = static_cast<int>(call.args[1]), protocol = static_cast<int>(call.args[2]);
  if (protocol != 0 && protocol != PF_UNIX) return -EPROTONOSUPPORT;
  const Caller caller(call.tid);
  const auto memory = caller.open_memory();
  if (!memory) return -memory.error();
  if (!still_waiting(context.listener.get(), call.id)) return -ESRCH;
  // Before anything is given: a descriptor cannot be taken back.
  int numbers[2];
  const auto bytes = std::as_writable_bytes(std::span(numbers));
  if (!caller.read(call.args[3], bytes) || !write_memory(memory->get(), call.args[3], bytes)) return -EFAULT;
  Pair pair;
  if (const int status = make_pair(context, pair); status != 0) return status;
  note_maker(context, caller, pair);
  for (int i = 0; i < 2; ++i) {
    if ((type & SOCK_NONBLOCK) != 0 && ::fcntl(pair.ends[i].get(), F_SETFL, O_RDWR | O_NONBLOCK) != 0) return -errno;
    numbers[i] = add_fd(context.listener.get(), call.id, pair.ends[i].get(), (type & SOCK_CLOEXEC) != 0);
    if (numbers[i] < 0) return numbers[i];
    pair.ends[i].reset();  // the caller may close its own and expect the other end to hear of it
  }
  return write_memory(memory->get(), call.args[3], bytes) ? 0 : -EFAULT;
}

}  // namespace

void handle_socketpair(Context& context, const Call& call) { answer(context.listener.get(), call.id, perform(context, call)); }

}  // namespace belljar::broker
