// Watches over the start of a sandbox that is to be kept: who asked for it may have gone, or the keeper been told to end, and then
// nobody waits for the start.
#pragma once

#include <memory>
#include <thread>

#include "base/unique_fd.h"
#include "base/wake.h"
#include "belljar/cancel.h"
#include "belljar/result.h"

namespace belljar::keeper {

class StartWatch {
 public:
  // `channel`: from which nothing comes before the sandbox runs; it is not read. Signals INT, TERM and HUP are blocked in every
  // thread, and stay pending. Errors: kResourceExhausted.
  static Result<std::unique_ptr<StartWatch>> begin(int channel);
  // The start is over; cancels nothing from here on.
  ~StartWatch();
  StartWatch(const StartWatch&) = delete;
  StartWatch& operator=(const StartWatch&) = delete;

  const CancelToken& token() const noexcept { return token_; }

 private:
  StartWatch(int channel, UniqueFd signals, Wake over, CancelToken token);
  void watch() const;

  const int channel_;
  const UniqueFd signals_;
  const Wake over_;
  const CancelToken token_;
  std::thread thread_;
};

}  // namespace belljar::keeper
