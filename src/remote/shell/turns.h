// At most so many calls to a service at once; the others wait: those that begin something mostly before those that look how it
// goes, else in the order they came.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>

#include "base/unique_fd.h"
#include "base/wake.h"
#include "belljar/result.h"

namespace belljar::remote::shell {

// All methods from any thread. Outlives its turns.
class Turns {
 public:
  class Turn {
   public:
    explicit Turn(Turns& turns) noexcept : turns_(&turns) {}
    Turn(Turn&& other) noexcept : turns_(other.turns_) { other.turns_ = nullptr; }
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (turns_ != nullptr) turns_->give();
    }

   private:
    Turns* turns_;
  };

  explicit Turns(std::size_t most) noexcept : free_(most) {}

  enum class Kind { kBegin, kLook };

  // Waits for as long as it takes. Errors: kCanceled, `cancel_fd` (-1: none) became readable; kResourceExhausted, no descriptor.
  Result<Turn> take(Kind kind, int cancel_fd);
  bool crowded() const noexcept { return waiting_.load() > 0; }

 private:
  struct Waiter {
    std::optional<Wake> granted;
    bool has = false;  // guarded by mutex_
  };

  // Whether it got a turn before it was cancelled.
  bool wait(Waiter& waiter, std::deque<Waiter*>& queue, int cancel_fd);
  void give() noexcept;

  std::mutex mutex_;
  std::size_t free_;                    // guarded by mutex_
  std::deque<Waiter*> begins_, looks_;  // guarded by mutex_
  unsigned given_ = 0;                  // guarded by mutex_
  std::atomic<std::size_t> waiting_{0};
};

}  // namespace belljar::remote::shell
