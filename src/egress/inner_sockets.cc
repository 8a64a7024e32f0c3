#include "egress/inner_sockets.h"

#include <sys/socket.h>

#include <cstring>

namespace belljar::egress {

bool InnerSockets::ask(std::uint64_t id, bool v6) {
  const char family = v6 ? 6 : 4;
  if (!maker_.valid() || ::send(maker_.get(), &family, sizeof family, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof family) return false;
  asked_.push_back(id);
  return true;
}

std::optional<std::pair<std::uint64_t, UniqueFd>> InnerSockets::take() {
  char family = 0;
  iovec part{&family, sizeof family};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = ::recvmsg(maker_.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got == 0) maker_.reset();  // pid 1 is gone
  if (got < 0 || asked_.empty()) return std::nullopt;
  UniqueFd socket;
  if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    socket = UniqueFd(fd);
  }
  const std::uint64_t id = asked_.front();
  asked_.pop_front();
  return std::pair(id, std::move(socket));
}

}  // namespace belljar::egress
