// Refusals, kept up to a limit and counted beyond it: a command that loops on a refused call must not grow our memory, and must
// not push out of the list what it did besides. Three bounds: of acts alike only the first few have a record each, the last of
// which counts the others; one operation takes at most three quarters of the list; the list has a limit.
// Safe from any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "belljar/exec_result.h"

namespace belljar::broker {

class ViolationLog {
 public:
  static constexpr std::uint64_t kRecordsAlike = 8;

  // `ignored` (policy.ignore_violations) keeps an act out of the list; it is counted. Called with no lock held, from any thread.
  explicit ViolationLog(std::size_t limit, std::function<bool(const Violation&)> ignored = {})
      : limit_(limit), ignored_(std::move(ignored)) {}

  // Sets time and sequence.
  void add(Violation violation) {
    const bool hide = ignored_ && ignored_(violation);
    const std::scoped_lock lock(mutex_);
    violation.time = std::chrono::system_clock::now();
    violation.sequence = sequence_++;
    if (hide) ++hidden_;
    else if (!joined(violation)) keep(std::move(violation));
  }
  // What was kept since the last call, oldest first.
  std::vector<Violation> take() {
    const std::scoped_lock lock(mutex_);
    alike_.clear();
    of_operation_.clear();
    return std::exchange(kept_, {});
  }
  // In all, not since the last take().
  std::uint64_t dropped() const {
    const std::scoped_lock lock(mutex_);
    return dropped_;
  }
  std::uint64_t hidden() const {
    const std::scoped_lock lock(mutex_);
    return hidden_;
  }

 private:
  struct Alike {
    std::size_t last = 0;  // index of the newest record
    std::uint64_t records = 0;
  };

  static std::size_t hash(const Violation& v) {
    std::size_t sum = static_cast<std::size_t>(v.errnum);
    for (const std::string_view text :
         {std::string_view(v.operation), std::string_view(v.target), std::string_view(v.rule), std::string_view(v.program)})
      sum = sum * 31 + std::hash<std::string_view>()(text);
    return sum;
  }
  static bool alike(const Violation& a, const Violation& b) {
    return a.operation == b.operation && a.target == b.target && a.rule == b.rule && a.program == b.program && a.errnum == b.errnum;
  }

  // Counted in an earlier record.
  bool joined(const Violation& violation) {
    const auto found = alike_.find(hash(violation));
    if (found == alike_.end() || found->second.records < kRecordsAlike) return false;
    Violation& last = kept_[found->second.last];
    if (!alike(last, violation)) return false;
    ++last.count;
    return true;
  }
  void keep(Violation violation) {
    std::size_t& taken = of_operation_[violation.operation];
    if (kept_.size() >= limit_ || taken >= limit_ - limit_ / 4) {
      ++dropped_;
      return;
    }
    ++taken;
    Alike& group = alike_[hash(violation)];
    group = {kept_.size(), group.records + 1};
    kept_.push_back(std::move(violation));
  }

  const std::size_t limit_;
  const std::function<bool(const Violation&)> ignored_;
  mutable std::mutex mutex_;
  std::vector<Violation> kept_;  // guarded by mutex_, as all below
  std::unordered_map<std::size_t, Alike> alike_;
  std::unordered_map<std::string, std::size_t> of_operation_;
  std::uint64_t sequence_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t hidden_ = 0;
};

}  // namespace belljar::broker
