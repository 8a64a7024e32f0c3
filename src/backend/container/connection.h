// One connection to the engine: bytes with a deadline, over a unix socket.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "backend/container/address.h"
#include "base/unique_fd.h"
#include "belljar/result.h"

namespace belljar::backend::container {

// A resource; one thread reads and one writes at a time.
class Connection {
 public:
  using Clock = std::chrono::steady_clock;
  using Deadline = Clock::time_point;

  // Errors: kUnavailable, nobody listens there; kPermissionDenied, the socket is not ours to use; kDeadlineExceeded.
  static Result<Connection> open(const Address& address, Deadline deadline);

  // What is there, at least one byte; 0 at the end of the stream. Errors: errno as a number below zero, -ETIMEDOUT at the deadline.
  long read(char* bytes, std::size_t size, Deadline deadline);
  // As much as goes at once, at least one byte, or a number below zero.
  long write(const char* bytes, std::size_t size, Deadline deadline);
  int fd() const noexcept { return fd_.get(); }

 private:
  explicit Connection(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace belljar::backend::container
