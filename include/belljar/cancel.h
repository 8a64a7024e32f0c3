// Ends a blocking call: from another thread, and by a deadline.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string_view>

#include "belljar/result.h"

namespace belljar {

// A handle that is shared by copying: one copy goes into the options of a call, another stays with who may cancel it. Cancelling is
// for good; a call that is given a cancelled token ends at once. Default constructed: can never be cancelled. Safe from any thread.
class CancelToken {
 public:
  CancelToken() = default;
  // Errors: kResourceExhausted, no descriptor is free.
  static Result<CancelToken> create();

  void cancel() const noexcept;
  bool cancelled() const noexcept;
  // Readable once cancelled; -1 for a default constructed one. For poll(2).
  int fd() const noexcept;

 private:
  friend struct CallOptions;
  struct State;
  std::shared_ptr<State> state_;
};

// The deadline of a call, and a token that cancels it: an option of every call of a Sandbox that may wait.
// exec, spawn, glob, grep and watch have a timeout and a token of their own, which mean the same.
struct CallOptions {
  std::optional<std::chrono::steady_clock::time_point> deadline;  // unset: the backend's own, if it has one
  CancelToken cancel;

  // From now. What no clock can count is never.
  static CallOptions within(std::chrono::milliseconds time, CancelToken cancel = {});
  // Whether it is over by now. Errors: kCanceled, kDeadlineExceeded; `what` is what could not be done.
  Result<void> check(std::string_view what) const;
  // One token for all: cancelled with `cancel`, with `other`, and at the deadline. Errors: kResourceExhausted, no descriptor is
  // free.
  Result<CancelToken> token(const CancelToken& other = {}) const;
};

}  // namespace belljar
