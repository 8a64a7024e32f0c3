// One connection to the engine: bytes with a deadline, over a unix socket or TCP, with TLS or plain.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "backend/container/address.h"
#include "backend/container/tls.h"
#include "base/unique_fd.h"
#include "belljar/cancel.h"
#include "belljar/result.h"

namespace belljar::backend::container {

// A resource; one thread reads and one writes at a time.
class Connection {
 public:
  using Clock = std::chrono::steady_clock;
  using Deadline = Clock::time_point;

  // Errors: kUnavailable, nobody listens there; kPermissionDenied, the socket is not ours to use; kDeadlineExceeded; with TLS also
  // those of TlsPipe::open. Names are looked up without a deadline of ours.
  static Result<Connection> open(const Address& address, Deadline deadline);

  // What is there, at least one byte; 0 at the end of the stream. Errors: errno as a number below zero, -ETIMEDOUT at the deadline.
  long read(char* bytes, std::size_t size, Deadline deadline);
  // As much as goes at once, at least one byte, or a number below zero.
  long write(const char* bytes, std::size_t size, Deadline deadline);
  int fd() const noexcept { return fd_.get(); }
  // Once cancelled, what waits ends with -ECANCELED.
  void set_cancel(CancelToken cancel) { cancel_ = std::move(cancel); }
  // Why it ended, where the end says no more than that: the other side's TLS alert. Else empty.
  std::string why() const { return tls_ == nullptr ? std::string() : tls_->why(); }

 private:
  explicit Connection(UniqueFd fd, std::unique_ptr<TlsPipe> tls = nullptr) : tls_(std::move(tls)), fd_(std::move(fd)) {}
  static Result<Connection> open_unix(const Address& address, Deadline deadline);
  static Result<Connection> open_tcp(const Address& address, Deadline deadline);
  CancelToken cancel_;
  std::unique_ptr<TlsPipe> tls_;
  UniqueFd fd_;  // closed before tls_, which waits for that
};

}  // namespace belljar::backend::container
