// The bus: bounded queues, of which a slow subscriber loses the oldest.
//
// A publisher never waits for a subscriber. Each subscription has a bounded queue, and a full one
// loses its oldest event and counts it: a reader that is late cares more for what happens now. To
// block the publisher would let a slow reader slow down the sandbox, and an unbounded queue would
// only move the loss to memory.
//
// The bus holds subscriptions weakly, so one that its owner dropped goes by itself. The bus's mutex
// is held over the numbering and all deliveries, hence all queues have the same order. A filter's
// `also` runs under it, and therefore must not call the bus again.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/patience.h"
#include "belljar/events.h"

namespace belljar {

struct Subscription::State {
  EventFilter filter;
  std::mutex mutex;
  std::condition_variable arrived;
  // guarded by mutex
  std::deque<Event> waiting;
  std::uint64_t lost = 0;
  bool ended = false;  // the bus is gone

  bool wants(const Event& event) const {
    if (!filter.kinds.empty() && std::ranges::find(filter.kinds, event.kind()) == filter.kinds.end()) return false;
    if (!filter.sandbox.empty() && filter.sandbox != event.sandbox) return false;
    return !filter.also || filter.also(event);
  }
};

Subscription::Subscription(std::shared_ptr<State> state) : state_(std::move(state)) {}
Subscription::~Subscription() = default;

std::optional<Event> Subscription::next(std::chrono::milliseconds patience) {
  std::unique_lock lock(state_->mutex);
  state_->arrived.wait_for(lock, bounded(patience), [&] { return !state_->waiting.empty() || state_->ended; });
  if (state_->waiting.empty()) return {};
  Event event = std::move(state_->waiting.front());
  state_->waiting.pop_front();
  return event;
}

std::uint64_t Subscription::lost() const {
  const std::lock_guard guard(state_->mutex);
  return state_->lost;
}

EventBus::EventBus() = default;
EventBus::~EventBus() {
  for (const auto& weak : subscriptions_) {
    const auto state = weak.lock();
    if (!state) continue;
    {
      const std::lock_guard guard(state->mutex);
      state->ended = true;
    }
    state->arrived.notify_all();
  }
}

std::shared_ptr<Subscription> EventBus::subscribe(EventFilter filter) {
  auto state = std::make_shared<Subscription::State>();
  state->filter = std::move(filter);
  state->filter.capacity = std::max<std::size_t>(state->filter.capacity, 1);
  const std::lock_guard guard(mutex_);
  std::erase_if(subscriptions_, [](const auto& weak) { return weak.expired(); });
  subscriptions_.push_back(state);
  return std::shared_ptr<Subscription>(new Subscription(std::move(state)));
}

void EventBus::publish(Event event) noexcept {
  // The order of the numbers is the order in every queue.
  const std::lock_guard guard(mutex_);
  event.sequence = sequence_++;
  event.time = std::chrono::system_clock::now();
  for (const auto& weak : subscriptions_) {
    const auto state = weak.lock();
    if (!state || !state->wants(event)) continue;
    {
      const std::lock_guard queue(state->mutex);
      if (state->waiting.size() >= state->filter.capacity) {
        state->waiting.pop_front();
        ++state->lost;
      }
      state->waiting.push_back(event);
    }
    state->arrived.notify_one();
  }
}

}  // namespace belljar
