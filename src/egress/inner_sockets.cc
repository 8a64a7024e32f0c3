#include "egress/inner_sockets.h"

#include <sys/socket.h>

#include <cstring>

#include "kernel/pass_fds.h"

namespace belljar::egress {

bool InnerSockets::ask(std::uint64_t id, bool v6) {
  const char family = v6 ? 6 : 4;
  if (!maker_.valid() || ::send(maker_.get(), &family, sizeof family, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof family) return false;
  asked_.push_back(id);
  return true;
}

std::optional<std::pair<std::uint64_t, UniqueFd>> InnerSockets::take() {
  char family = 0;
  const auto got = kernel::receive_fds<1>(maker_.get(), &family, sizeof family, MSG_DONTWAIT);
  if (got.size == 0) maker_.reset();  // pid 1 is gone
  UniqueFd socket(got.count == 1 ? got.fds[0] : -1);
  if (got.size < 0 || asked_.empty()) return std::nullopt;
  const std::uint64_t id = asked_.front();
  asked_.pop_front();
  return std::pair(id, std::move(socket));
}

}  // namespace belljar::egress
