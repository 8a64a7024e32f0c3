#include "broker/umasks.h"

namespace belljar::broker {
namespace {

constexpr std::size_t kMost = 1024;
constexpr auto kUnsettled = std::chrono::milliseconds(50);

}  // namespace

mode_t Umasks::of(const Caller& caller) {
  int initial = initial_;
  if (initial >= 0) return static_cast<mode_t>(initial);
  if (initial == -1) {
    const mode_t mask = caller.umask();
    // Unless it changes right now: then it is read again below, next time.
    initial_.compare_exchange_strong(initial, static_cast<int>(mask));
    return mask;
  }
  const ino_t identity = caller.identity();
  {
    const std::scoped_lock lock(mutex_);
    const auto found = known_.find(caller.tid());
    if (found != known_.end() && found->second.identity == identity) return found->second.mask;
  }
  const Clock::time_point before = Clock::now();
  const mode_t mask = caller.umask();
  const std::scoped_lock lock(mutex_);
  if (before < changed_ + kUnsettled) return mask;
  if (known_.size() >= kMost) known_.clear();
  known_[caller.tid()] = {identity, mask};
  return mask;
}

void Umasks::changes() {
  const std::scoped_lock lock(mutex_);
  initial_ = -2;
  changed_ = Clock::now();
  known_.clear();
}

}  // namespace belljar::broker
