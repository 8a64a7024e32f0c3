#include "broker/one_processor.h"

#include <sched.h>

#include <chrono>

#include "broker/notification.h"

namespace belljar::broker {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kUponTheOther = std::chrono::microseconds(500);  // between two opens of one caller
constexpr int kMostOpens = 32;                                  // then this thread goes where its caller is, which may be elsewhere
constexpr int kMostOthers = 4;                                  // calls of that caller that are no opens

// Of this thread.
struct Own {
  bool stays = false;  // on one processor; `everywhere` is where it may run else
  cpu_set_t everywhere{};
  pid_t caller = -1;  // who was given a descriptor last, and when
  Clock::time_point given;
  int opens = 0, others = 0;  // since it stays
};
thread_local Own own;

}  // namespace

void OneProcessor::leave() noexcept {
  if (own.stays) ::sched_setaffinity(0, sizeof own.everywhere, &own.everywhere);
  own.stays = false;
}

void OneProcessor::begin_call(const Call& call) noexcept {
  if (own.stays && (call.tid != own.caller || ++own.others > kMostOthers)) leave();
}

OneProcessor::OneProcessor(int listener, const Call& call) noexcept : listener_(listener), call_(call), held_(hold()) {
  if (!held_) leave();
}

bool OneProcessor::hold() noexcept {
  // EINVAL: more processors than a cpu_set_t has room for (1 024).
  if (::sched_getaffinity(call_.tid, sizeof theirs_, &theirs_) != 0 || CPU_COUNT(&theirs_) < 2) return false;
  const int here = ::sched_getcpu();
  if (here < 0 || here >= CPU_SETSIZE || !CPU_ISSET(here, &theirs_)) return false;
  if (!own.stays && ::sched_getaffinity(0, sizeof own.everywhere, &own.everywhere) != 0) return false;
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(here, &only);
  if (!still_waiting(listener_, call_.id) || ::sched_setaffinity(call_.tid, sizeof only, &only) != 0) return false;
  if (own.stays) return true;
  own.stays = ::sched_setaffinity(0, sizeof only, &only) == 0;
  own.opens = 0;
  return true;
}

OneProcessor::~OneProcessor() {
  if (!held_) return;
  if (still_waiting(listener_, call_.id)) ::sched_setaffinity(call_.tid, sizeof theirs_, &theirs_);
  const auto now = Clock::now();
  const bool again = own.caller == call_.tid && now - own.given < kUponTheOther && ++own.opens < kMostOpens;
  own.caller = call_.tid;
  own.given = now;
  own.others = 0;
  if (!again) leave();
}

}  // namespace belljar::broker
