// A token is a descriptor that becomes readable once and stays so, so every wait can include it in
// its poll. A plain token is an eventfd. A token of several (two tokens and a deadline) is an epoll
// instance that holds their descriptors: epoll(7) lets such a descriptor be polled itself, and it
// is readable while one of the members is. So no thread has to copy one event to another, and no
// order of cancelling can be missed. The combined token shares the state of its members, because
// epoll drops a descriptor when it is closed.
#include "belljar/cancel.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/patience.h"
#include "base/unique_fd.h"
#include "base/wake.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar {

using Clock = std::chrono::steady_clock;

struct CancelToken::State {
  Wake wake;
  // Of several: readable at the deadline, if there is one, and an epoll of it, of `wake` and of the other tokens.
  UniqueFd timer, any;
  std::array<std::shared_ptr<State>, 2> others;

  int fd() const noexcept { return any.valid() ? any.get() : wake.get(); }
};

namespace {

Error no_token(const char* call) { return Error(Code::kResourceExhausted, "cannot make a cancel token").sys(errno, call); }

// Readable from then on.
UniqueFd timer_at(Clock::time_point deadline) {
  UniqueFd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  const auto since_boot = std::max(deadline.time_since_epoch(), Clock::duration(1));  // 0 would disarm it, and mean never
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(since_boot);
  const itimerspec when{.it_interval = {}, .it_value = {.tv_sec = whole.count(), .tv_nsec = (since_boot - whole).count()}};
  if (timer.valid() && ::timerfd_settime(timer.get(), TFD_TIMER_ABSTIME, &when, nullptr) != 0) return {};
  return timer;
}

}  // namespace

Result<CancelToken> CancelToken::create() {
  CancelToken token;
  token.state_ = std::make_shared<State>();
  if (!token.state_->wake.valid()) return no_token("eventfd");
  return token;
}

void CancelToken::cancel() const noexcept {
  if (state_ != nullptr) state_->wake.ring();
}

bool CancelToken::cancelled() const noexcept {
  pollfd look{fd(), POLLIN, 0};
  return state_ != nullptr && ::poll(&look, 1, 0) > 0;
}

int CancelToken::fd() const noexcept { return state_ == nullptr ? -1 : state_->fd(); }

CallOptions CallOptions::within(std::chrono::milliseconds time, CancelToken cancel) {
  if (time >= kForever) return {.deadline = {}, .cancel = std::move(cancel)};
  return {.deadline = Clock::now() + std::max(time, -kForever), .cancel = std::move(cancel)};
}

Result<void> CallOptions::check(std::string_view what) const {
  if (cancel.cancelled()) return Error(Code::kCanceled, std::string(what)).reason("the caller cancelled it");
  if (deadline && Clock::now() >= *deadline)
    return Error(Code::kDeadlineExceeded, std::string(what)).reason("its deadline has passed").next("give it a later one");
  return {};
}

Result<CancelToken> CallOptions::token(const CancelToken& other) const {
  const bool timed = deadline && *deadline != Clock::time_point::max();
  if (!timed && other.fd() < 0) return cancel;
  if (!timed && cancel.fd() < 0) return other;
  auto state = std::make_shared<CancelToken::State>();
  if (timed) state->timer = timer_at(*deadline);
  state->any = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  state->others = {cancel.state_, other.state_};
  if (!state->wake.valid() || (timed && !state->timer.valid()) || !state->any.valid())
    return no_token("epoll_create1, eventfd or timerfd");
  for (const int fd : std::array{state->wake.get(), state->timer.get(), cancel.fd(), other.fd()}) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (fd >= 0 && ::epoll_ctl(state->any.get(), EPOLL_CTL_ADD, fd, &event) != 0) return no_token("epoll_ctl");
  }
  CancelToken token;
  token.state_ = std::move(state);
  return token;
}

}  // namespace belljar
