#include "broker/one_processor.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <string_view>

#include "base/unique_fd.h"
#include "broker/notification.h"

namespace belljar::broker {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kUponTheOther = std::chrono::microseconds(500);  // between two opens of one caller
constexpr int kMostOpens = 32;                                  // then this thread goes where its caller is, which may be elsewhere
constexpr int kMostOthers = 4;                                  // calls of that caller that are no opens
constexpr auto kCounted = std::chrono::milliseconds(2);

// Of this thread.
struct Own {
  bool stays = false;  // on one processor; `everywhere` is where it may run else
  cpu_set_t everywhere{};
  pid_t caller = -1;  // who was given a descriptor last, and when
  Clock::time_point given;
  int opens = 0, others = 0;  // since it stays
  Clock::time_point counted;
  bool busy = false;
};
thread_local Own own;

// "0.20 0.18 0.12 1/80 11206", proc_loadavg(5): the fourth is how many run or want to.
int running_tasks() noexcept {
  const UniqueFd file(::open("/proc/loadavg", O_RDONLY | O_CLOEXEC));
  char text[128];
  const ssize_t size = file.valid() ? ::read(file.get(), text, sizeof text) : -1;
  std::string_view rest(text, size > 0 ? static_cast<std::size_t>(size) : 0);
  rest = rest.substr(0, rest.find('/'));
  rest.remove_prefix(rest.rfind(' ') + 1);
  int count = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), count);
  return count;
}

// No processor is idle, as far as was known a moment ago.
bool all_busy() noexcept {
  static const long processors = ::sysconf(_SC_NPROCESSORS_ONLN);
  if (const auto now = Clock::now(); now - own.counted > kCounted) {
    own.counted = now;
    own.busy = running_tasks() >= processors;
  }
  return own.busy;
}

}  // namespace

void OneProcessor::leave() noexcept {
  if (own.stays) ::sched_setaffinity(0, sizeof own.everywhere, &own.everywhere);
  own.stays = false;
}

void OneProcessor::begin_call(const Call& call) noexcept {
  if (own.stays && (call.tid != own.caller || ++own.others > kMostOthers)) leave();
}

OneProcessor::OneProcessor(int listener, const Call& call) noexcept
    : listener_(listener), call_(call), held_(!all_busy() && hold()) {
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
