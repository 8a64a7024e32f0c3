// TCP sockets of the sandbox's network, asked of its pid 1 one by one: connect(2) on such a socket reaches what listens inside.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "base/unique_fd.h"

namespace belljar::egress {

// One thread.
class InnerSockets {
 public:
  InnerSockets() = default;
  explicit InnerSockets(UniqueFd maker) : maker_(std::move(maker)) {}
  int fd() const noexcept { return maker_.get(); }
  // False: there is no process inside to make one. Otherwise take() will return the socket with `id`.
  bool ask(std::uint64_t id, bool v6);
  // The next answer, if one is there: who asked, and the socket (invalid: it could not be made).
  std::optional<std::pair<std::uint64_t, UniqueFd>> take();

 private:
  UniqueFd maker_;
  std::deque<std::uint64_t> asked_;  // in the order of the answers
};

}  // namespace belljar::egress
