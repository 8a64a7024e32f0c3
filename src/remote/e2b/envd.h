// The daemon in one sandbox: Connect calls in JSON, and files over plain HTTP.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "belljar/result.h"
#include "http/client.h"
#include "remote/e2b/control.h"
#include "remote/e2b/events.h"
#include "remote/frames.h"

namespace belljar::remote::e2b {

inline constexpr std::chrono::seconds kKeepalive{50};  // a stream says something that often

class Envd {
 public:
  Envd(const http::Client& http, SandboxAccess access, std::string api_key, std::string user, std::chrono::milliseconds patience)
      : http_(http), access_(std::move(access)), api_key_(std::move(api_key)), user_(std::move(user)), patience_(patience) {
    // Daemons before 0.4.0 have no user of their own for who names none.
    if (user_.empty() && is_older(access_.envd_version, {0, 4, 0})) user_ = "user";
  }

  const SandboxAccess& access() const noexcept { return access_; }
  std::chrono::milliseconds patience() const noexcept { return patience_; }

  // A unary call; the answer's body. Errors: `what` failed, with the code and the sentence of the daemon; kUnavailable, the sandbox
  // is gone; kUnauthenticated; kDeadlineExceeded; kCanceled.
  Result<std::string> call(const char* method, const std::string& json, const std::string& what) const {
    return call(method, json, what, patience_, -1);
  }
  Result<std::string> call(const char* method, const std::string& json, const std::string& what, std::chrono::milliseconds patience,
                           int cancel_fd) const;
  // A stream of events. `lives`: the daemon kills the process after that.
  Result<std::unique_ptr<http::Stream>> start(const std::string& json, std::optional<std::chrono::milliseconds> lives) const;
  // nullopt: the stream has begun as it should. Else why it did not.
  std::optional<Error> refusal(const http::Reply& head, const std::string& body, const std::string& what) const;
  Error refused(const Complaint& complaint, const std::string& what) const;

  // `first` and `last` byte, or all. Errors: as call(); kDataLoss, less came than was said.
  Result<std::string> read(const std::string& path, std::optional<std::pair<std::uint64_t, std::uint64_t>> part,
                           const std::string& what, int cancel_fd) const;
  Result<void> write(const std::string& path, std::string_view bytes, const std::string& what, int cancel_fd) const;
  Result<void> health(int cancel_fd) const;

 private:
  std::vector<std::string> headers() const;
  std::string files_url(const std::string& path) const;

  http::Client http_;
  SandboxAccess access_;
  std::string api_key_, user_;
  std::chrono::milliseconds patience_;
};

}  // namespace belljar::remote::e2b
