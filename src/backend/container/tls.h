// TLS to an engine, behind a socket that reads and writes plain bytes: the line is used by a thread that reads and one that writes,
// which one SSL object does not allow.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "backend/container/address.h"
#include "base/unique_fd.h"
#include "belljar/result.h"

namespace belljar::backend::container {

class TlsPipe {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  // Shakes hands over `socket` (connected, non-blocking) and relays from then on; `plain` is the caller's end. TLS 1.2 or newer;
  // the certificate must be of address.tls->ca, in date, and for address.host. Errors: kNotFound, kPermissionDenied and
  // kInvalidArgument, a PEM file; kUnauthenticated, one side does not believe the other; kDeadlineExceeded; kUnavailable.
  static Result<std::unique_ptr<TlsPipe>> open(UniqueFd socket, const Address& address, Deadline deadline, UniqueFd& plain);
  // The caller has closed `plain` before.
  ~TlsPipe();
  TlsPipe(const TlsPipe&) = delete;
  TlsPipe& operator=(const TlsPipe&) = delete;

  // Why the line broke, for who has read its end; empty: it was closed as it should be.
  std::string why() const;

 private:
  struct Line;
  explicit TlsPipe(std::unique_ptr<Line> line);
  void relay();

  std::unique_ptr<Line> line_;
  mutable std::mutex mutex_;
  std::string why_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace belljar::backend::container
