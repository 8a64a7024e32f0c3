// A semaphore with two queues. A thousand commands that all look how they go would keep each other, and every
// start, from being served; so calls that begin something go first, and every fourth turn is a look's, or looks
// would starve in turn.
//
// A free turn is handed to the first waiter directly and not put back for all to take: a newcomer could take it
// before the waiter wakes, again and again. std::counting_semaphore would not do, as a waiter must also wake
// when its caller cancels; each waiter has an eventfd that poll(2) watches together with the cancel descriptor.
//
// A waiter may be cancelled and be given a turn at the same moment. Then it has the turn and gives it on, which
// the destructor of Turn does.
#include "remote/shell/turns.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <mutex>

#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::remote::shell {
namespace {

constexpr unsigned kLooksShare = 4;  // every fourth turn is a look's, however many begin

bool is_cancelled(int cancel_fd) noexcept {
  pollfd cancel{.fd = cancel_fd, .events = POLLIN, .revents = 0};
  return cancel_fd >= 0 && ::poll(&cancel, 1, 0) > 0;
}

}  // namespace

Result<Turns::Turn> Turns::take(Kind kind, int cancel_fd) {
  std::deque<Waiter*>& queue = kind == Kind::kBegin ? begins_ : looks_;
  Waiter waiter;
  bool has = false;
  {
    const std::lock_guard lock(mutex_);
    has = free_ > 0;  // then nobody waits
    if (has) {
      --free_;
    } else {
      if (!waiter.granted.emplace().valid())
        return Error(Code::kResourceExhausted, "cannot ask the service").sys(errno, "eventfd").next("run fewer at once");
      queue.push_back(&waiter);
      ++waiting_;
    }
  }
  if (!has) has = wait(waiter, queue, cancel_fd);
  if (has) {
    Turn turn(*this);
    // Only now: what a cancel ends gives its turn to the next, who was cancelled before.
    if (!is_cancelled(cancel_fd)) return turn;
  }
  return Error(Code::kCanceled, "cannot ask the service").reason("it was cancelled while others were asking");
}

bool Turns::wait(Waiter& waiter, std::deque<Waiter*>& queue, int cancel_fd) {
  std::array<pollfd, 2> fds = {
      {{.fd = waiter.granted->get(), .events = POLLIN, .revents = 0}, {.fd = cancel_fd, .events = POLLIN, .revents = 0}}};
  while (::poll(fds.data(), fds.size(), -1) < 0 && errno == EINTR) {
  }
  const std::lock_guard lock(mutex_);
  --waiting_;
  if (!waiter.has) std::erase(queue, &waiter);
  return waiter.has;
}

void Turns::give() noexcept {
  const std::lock_guard lock(mutex_);
  const bool look = begins_.empty() || (!looks_.empty() && ++given_ % kLooksShare == 0);
  std::deque<Waiter*>& queue = look ? looks_ : begins_;
  if (queue.empty()) {
    ++free_;
    return;
  }
  Waiter& next = *queue.front();
  queue.pop_front();
  next.has = true;
  next.granted->ring();
}

}  // namespace belljar::remote::shell
