// When a request may be sent again, and how long to wait before.
//
// An answer that is larger than is read counts as lost (code_unheard): the HTTP client calls that
// kResourceExhausted, which callers would take for a refusal, and the service may have done what it was asked.
//
// The pause is what the server names (Retry-After), or grows by a second per try. It is compared as a number of
// seconds before it becomes a time, since a server may name more than a clock can count. A pause that goes past
// the deadline is not begun.
#include "remote/retry.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "belljar/error.h"
#include "belljar/result.h"
#include "http/client.h"

namespace belljar::remote {

using namespace std::chrono_literals;

Code code_unheard(const Error& failed) noexcept {
  return failed.code() == Code::kResourceExhausted ? Code::kDataLoss : failed.code();
}

Code code_of_status(long status) noexcept {
  switch (status) {
    case 400:
      return Code::kInvalidArgument;
    case 401:
      return Code::kUnauthenticated;
    case 403:
      return Code::kPermissionDenied;
    case 404:
      return Code::kNotFound;
    case 409:
      return Code::kAborted;
    case 429:
      return Code::kResourceExhausted;
    default:
      return status >= 500 || status == 408 ? Code::kUnavailable : Code::kUnknown;
  }
}

Result<void> wait_for(std::chrono::milliseconds time, int cancel_fd) {
  const auto until = http::Clock::now() + time;
  pollfd cancel{.fd = cancel_fd, .events = POLLIN, .revents = 0};
  for (auto left = time; left > 0ms; left = std::chrono::ceil<std::chrono::milliseconds>(until - http::Clock::now())) {
    if (::poll(&cancel, 1, static_cast<int>(std::min<std::chrono::milliseconds>(left, 60s).count())) > 0)
      return Error(Code::kCanceled, "the request was cancelled");
  }
  return {};
}

Result<bool> wait_before_retry(int turn, const http::Reply& reply, http::Clock::time_point deadline, int cancel_fd) {
  // Compared as numbers: what a server names may be more than a clock can count.
  const std::int64_t pause = reply.retry_seconds.value_or(turn);
  const auto left = std::chrono::floor<std::chrono::seconds>(deadline - http::Clock::now()).count();
  if (pause < 0 || pause >= left) return false;
  BELLJAR_CHECK(wait_for(std::chrono::seconds(pause), cancel_fd));
  return true;
}

}  // namespace belljar::remote
