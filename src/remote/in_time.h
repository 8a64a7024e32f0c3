// Calls that wait for a service, and end when their caller says so.
#pragma once

#include <string>
#include <utility>

#include "belljar/cancel.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "session/in_time.h"

namespace belljar::remote {

// The error of a call that changes something and was ended before its answer came: whether it was done is not known.
struct UnknownOutcome {
  std::string left, next;  // empty: nothing was to be changed
};
inline UnknownOutcome may_be_done() {
  return {"it may have been done all the same, or a part of it", "look before you do it again"};
}

// Does `act(end)`, which gives up the wait when the token `end` is cancelled: by the caller, or at the deadline. Errors: as
// CallOptions::check, of `what`; others as act's.
template <class Act>
auto in_time(const CallOptions& options, const std::string& what, const UnknownOutcome& unheard, Act act)
    -> decltype(act(std::declval<const CancelToken&>())) {
  BELLJAR_CHECK(options.check(what));
  const CancelToken end = BELLJAR_TRY(options.token());
  auto done = act(end);
  if (done || !end.cancelled()) return done;
  const Code code = done.error().code();
  if (code != Code::kCanceled && code != Code::kDeadlineExceeded && code != Code::kUnavailable) return done;
  const Result<void> over = options.check(what);
  if (!over && !unheard.left.empty()) return session::in_vain(over.error(), unheard.left, unheard.next);
  if (!over) return over.error();
  return done;
}

}  // namespace belljar::remote
