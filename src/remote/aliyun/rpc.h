// Asks AgentBay's control plane: one action, one answer, and another try where nothing can have begun.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "belljar/error.h"
#include "belljar/result.h"
#include "http/client.h"
#include "remote/aliyun/address.h"
#include "remote/aliyun/wire.h"

namespace belljar::remote::aliyun {

enum class Repeat {
  kOnlyRefused,  // what the service refused unread (Throttling); anything else may have been done
  kAlways,       // asking twice changes nothing: a service that is not there for a moment is asked again, too
};

using WallClock = std::function<std::chrono::system_clock::time_point()>;

// How long to wait before try number `turn` (from 1) is repeated: what the service asks for, or longer each time. nullopt: not in
// the time that is left, or not any more.
std::optional<std::chrono::milliseconds> pause_before(int turn, const http::Reply& reply, http::Clock::time_point deadline);

// Safe from any thread.
class Rpc {
 public:
  Rpc(http::Client http, Address address, std::chrono::milliseconds patience, WallClock clock = std::chrono::system_clock::now)
      : http_(std::move(http)), address_(std::move(address)), patience_(patience), clock_(std::move(clock)) {}
  const Address& address() const noexcept { return address_; }
  const http::Client& http() const noexcept { return http_; }
  std::chrono::milliseconds patience() const noexcept { return patience_; }

  // Returns the service's answer, refusals too. Errors: kUnavailable, it cannot be reached, or the answer broke off;
  // kDeadlineExceeded; kDataLoss; kCanceled.
  Result<Answer> ask(std::string_view action, Fields fields, Repeat repeat) const;
  Result<Answer> ask(std::string_view action, Fields fields, Repeat repeat, std::chrono::milliseconds patience,
                     int cancel_fd) const;
  // The same, a refusal being an error: `what` could not be done.
  Result<Answer> call(std::string_view action, Fields fields, Repeat repeat, const std::string& what, int cancel_fd = -1) const;
  Error refused(const Answer& answer, const std::string& what) const;

 private:
  http::Request request(std::string_view action, const Fields& fields) const;

  http::Client http_;
  Address address_;
  std::chrono::milliseconds patience_;
  WallClock clock_;
};

}  // namespace belljar::remote::aliyun
