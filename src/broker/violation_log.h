// Refusals, kept up to a limit and counted beyond it: a command that loops on a refused call must not grow our memory.
// Safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "belljar/exec_result.h"

namespace belljar::broker {

class ViolationLog {
 public:
  explicit ViolationLog(std::size_t limit) noexcept : limit_(limit) {}

  // Sets time and sequence.
  void add(Violation violation) {
    const std::scoped_lock lock(mutex_);
    violation.time = std::chrono::system_clock::now();
    violation.sequence = sequence_++;
    if (kept_.size() < limit_) kept_.push_back(std::move(violation));
    else ++dropped_;
  }
  std::vector<Violation> take() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(kept_, {});
  }
  std::uint64_t dropped() const {
    const std::scoped_lock lock(mutex_);
    return dropped_;
  }

 private:
  const std::size_t limit_;
  mutable std::mutex mutex_;
  std::vector<Violation> kept_;  // guarded by mutex_, as all below
  std::uint64_t sequence_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace belljar::broker
