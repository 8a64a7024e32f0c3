#include "remote/shell/turns.h"

#include <poll.h>
#include <sys/eventfd.h>
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

}  // namespace

Result<Turns::Turn> Turns::take(Kind kind, int cancel_fd) {
  std::deque<Waiter*>& queue = kind == Kind::kBegin ? begins_ : looks_;
  Waiter waiter;
  {
    const std::lock_guard lock(mutex_);
    if (free_ > 0) {  // then nobody waits
      --free_;
      return Turn(*this);
    }
    waiter.granted = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!waiter.granted.valid())
      return Error(Code::kResourceExhausted, "cannot ask the service").sys(errno, "eventfd").next("run fewer at once");
    queue.push_back(&waiter);
    ++waiting_;
  }
  std::array<pollfd, 2> fds = {
      {{.fd = waiter.granted.get(), .events = POLLIN, .revents = 0}, {.fd = cancel_fd, .events = POLLIN, .revents = 0}}};
  while (::poll(fds.data(), fds.size(), -1) < 0 && errno == EINTR) {
  }
  bool has = false;
  {
    const std::lock_guard lock(mutex_);
    --waiting_;
    has = waiter.has;
    if (!has) std::erase(queue, &waiter);
  }
  if (has) {
    Turn turn(*this);
    if (fds[1].revents == 0) return turn;
  }
  return Error(Code::kCanceled, "cannot ask the service").reason("it was cancelled while others were asking");
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
  const std::uint64_t one = 1;
  if (::write(next.granted.get(), &one, sizeof one) < 0) return;  // of an eventfd at 0 it cannot fail
}

}  // namespace belljar::remote::shell
