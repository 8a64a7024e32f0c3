// std::mutex knows no deadline, and a condition variable would have to be told by each holder. A try every few
// milliseconds costs only calls that have an end of their own and found the lock taken; the others lock as
// usual.
#include "session/in_time.h"

#include <poll.h>

#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "belljar/cancel.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::session {
namespace {

// A mutex has no descriptor: it is tried again that often, by who gave an end to the wait and found it taken.
constexpr int kTryAgainMs = 10;

bool has_end(const CallOptions& options) noexcept { return options.deadline || options.cancel.fd() >= 0; }

}  // namespace

Result<void> check_in_time(const CallOptions& options, std::string_view doing, const std::string& path) {
  if (!has_end(options)) return {};  // no text is made for nothing
  return options.check(format("cannot {} {}", doing, quoted(path)));
}

Result<std::unique_lock<std::mutex>> lock_in_time(std::mutex& mutex, const CallOptions& options, std::string_view what) {
  if (!has_end(options)) return std::unique_lock(mutex);
  std::unique_lock lock(mutex, std::try_to_lock);
  while (!lock.owns_lock()) {
    BELLJAR_CHECK(options.check(what));
    pollfd cancelled{options.cancel.fd(), POLLIN, 0};
    ::poll(&cancelled, 1, kTryAgainMs);
    (void)lock.try_lock();
  }
  return lock;
}

Error in_vain(const Error& over, const std::string& left, std::string next) {
  return Error(over.code(), over.what()).reason(over.reason() + "; " + left).next(std::move(next));
}

}  // namespace belljar::session
