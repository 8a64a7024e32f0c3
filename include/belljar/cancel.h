// Ends a blocking call from another thread.
#pragma once

#include <memory>

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
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace belljar
