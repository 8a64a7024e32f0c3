#include "session/ended.h"

#include <unistd.h>

#include <atomic>
#include <string>

#include "base/format.h"
#include "belljar/cancel.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::session {

std::string next_id() {
  static std::atomic<unsigned> serial{0};
  return format("sb-{}-{}", ::getpid(), ++serial);
}

Result<void> check_not_cancelled(const CancelToken& cancel) {
  if (!cancel.cancelled()) return {};
  return Error(Code::kCanceled, kNoStart).reason("it was cancelled").next("make another, with a token of its own");
}

Error start_error(const Error& error, const CallOptions& options) {
  if (error.code() != Code::kCanceled) return error;
  const Result<void> over = options.check(kNoStart);
  if (over) return error;
  return error.next().empty() ? over.error() : Error(over.error()).next(error.next());
}

Error not_healthy(const Error& why) {
  if (why.code() == Code::kCanceled || why.code() == Code::kDeadlineExceeded) return why;
  return Error(Code::kUnavailable, why.what()).reason(why.reason());
}

}  // namespace belljar::session
