// How sockets get out of a container, when the only line to it is a byte stream.
//
// A directory of ours is bound into the container, with a listening SOCK_SEQPACKET in it; pid 1 connects
// once, sends all sockets in one message (SCM_RIGHTS), and the socket and directory are gone before any
// command runs.
//
// Who may come? The socket must be open to everybody, for the uid inside is unknown, so it lies in a
// directory that only we can enter; inside, nothing but pid 1 runs yet. A peer that we can see is checked by
// its pid all the same (SO_PEERCRED).
//
// What comes is not trusted either: number, truncation (MSG_CTRUNC) and the kind of each descriptor are
// compared with what was asked for (is_like), since a peer that we cannot see may be anybody inside.
#include "backend/container/socket_handover.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/container/records.h"
#include "backend/container/shown_dir.h"
#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "kernel/pass_fds.h"
#include "launch/plan.h"

namespace belljar::backend::container {
namespace {

using launch::InnerSocket;
using Kind = InnerSocket::Kind;

constexpr std::size_t kMostPassed = 253;  // SCM_MAX_FD: more never come in one message

Error unopened(const char* call) {
  return Error(Code::kFailedPrecondition, "cannot make the way out of the container's network")
      .sys(errno, call)
      .next("set XDG_STATE_HOME to a directory on a local file system");
}

Error wrong(std::string reason) {
  return Error(Code::kDataLoss, "cannot serve the container's network")
      .reason("its pid 1 passed out something else than was asked for: " + std::move(reason));
}

char letter_of(Kind kind) {
  switch (kind) {
    case Kind::kListener:
      return 'L';
    case Kind::kDatagram:
      return 'D';
    case Kind::kDiag:
      return 'N';
    case Kind::kMaker:
      break;
  }
  return 'M';
}

int option_of(int fd, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  return ::getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

bool is_like(int fd, const InnerSocket& asked) {
  const int domain = option_of(fd, SO_DOMAIN), type = option_of(fd, SO_TYPE);
  switch (asked.kind) {
    case Kind::kListener:
      return domain == AF_INET && type == SOCK_STREAM && option_of(fd, SO_ACCEPTCONN) == 1;
    case Kind::kDatagram:
      return domain == AF_INET && type == SOCK_DGRAM;
    case Kind::kDiag:
      return domain == AF_NETLINK && type == SOCK_RAW;
    case Kind::kMaker:
      break;
  }
  return domain == AF_UNIX && type == SOCK_SEQPACKET;
}

struct Packet {
  std::string bytes;
  std::vector<UniqueFd> fds;
  bool cut = false;
};

Packet receive_packet(int peer) {
  Packet packet;
  std::array<char, 4 * launch::kMaxInnerSockets + 4> bytes;
  const auto got = kernel::receive_fds<kMostPassed>(peer, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got.size < 0) return packet;
  packet.bytes.assign(bytes.data(), static_cast<std::size_t>(got.size));
  packet.cut = got.cut;
  for (std::size_t i = 0; i < got.count; ++i) packet.fds.emplace_back(got.fds[i]);
  return packet;
}

Result<HandedSockets> check_packet(Packet packet, std::span<const InnerSocket> asked) {
  HandedSockets passed;
  if (packet.cut || packet.bytes.size() != 4 * asked.size()) return wrong(format("{} bytes", packet.bytes.size()));
  for (std::size_t i = 0; i < asked.size(); ++i) passed.errnos.push_back(static_cast<int>(number_in(packet.bytes, 4 * i)));
  const auto made = static_cast<std::size_t>(std::ranges::count(passed.errnos, 0));
  if (packet.fds.size() != made) return wrong(format("{} descriptors instead of {}", packet.fds.size(), made));
  std::size_t next = 0;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    passed.sockets.emplace_back();
    if (passed.errnos[i] != 0) continue;
    passed.sockets.back() = std::move(packet.fds[next++]);
    if (!is_like(passed.sockets.back().get(), asked[i])) return wrong(format("descriptor {} is of another kind", next));
  }
  return passed;
}

}  // namespace

std::vector<std::string> handover_arguments(std::span<const InnerSocket> sockets) {
  std::vector<std::string> words = {"--door", kHandoverSocket};
  for (const InnerSocket& socket : sockets) {
    words.emplace_back("--socket");
    words.push_back(format("{}{}:{}", letter_of(socket.kind), socket.address, socket.port));
  }
  return words;
}

// The directory that is shared lies in one that only we can enter: nobody else of this machine gets to the socket, whatever its
// mode, which has to let in whoever the commands are.
Result<SocketHandover> SocketHandover::open(const std::string& state) {
  ShownDir directory = BELLJAR_TRY(ShownDir::create(state));
  std::string shared = directory.path() + "/door";
  if (::mkdir(shared.c_str(), 0700) != 0 || ::chmod(shared.c_str(), 0755) != 0) return unopened("mkdir");
  const UniqueFd at(::open(shared.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  UniqueFd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!at.valid() || !listener.valid()) return unopened("socket");
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  // A name of its own may be too long for sun_path.
  const std::string path = format("/proc/self/fd/{}/socket", at.get());
  std::memcpy(name.sun_path, path.c_str(), path.size() + 1);
  constexpr int kBacklog = 8;
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) return unopened("bind");
  if (::chmod(path.c_str(), 0666) != 0) return unopened("chmod");
  if (::listen(listener.get(), kBacklog) != 0) return unopened("listen");
  return SocketHandover(std::move(directory), std::move(shared), std::move(listener));
}

Result<HandedSockets> SocketHandover::receive(std::span<const InnerSocket> asked, const std::function<bool(int pid)>& is_pid1) && {
  const SocketHandover self(std::move(*this));  // closed and removed when this returns
  for (int others = 0;; ++others) {
    const UniqueFd peer(::accept4(self.listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!peer.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return Error(Code::kFailedPrecondition, "cannot serve the container's network")
          .reason(others == 0 ? "its pid 1 greeted and passed out no sockets"
                              : "who came with sockets is not its pid 1, or /proc does not show that it is")
          .next("look at the engine's log");
    }
    ucred who{};
    socklen_t size = sizeof who;
    if (::getsockopt(peer.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) continue;
    if (who.pid != 0 && !is_pid1(who.pid)) continue;
    HandedSockets passed = BELLJAR_TRY(check_packet(receive_packet(peer.get()), asked));
    passed.pid = who.pid;
    return passed;
  }
}

}  // namespace belljar::backend::container
