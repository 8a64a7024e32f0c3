#include "broker/one_processor.h"

#include <sched.h>

#include "broker/notification.h"

namespace belljar::broker {

OneProcessor::OneProcessor(int listener, const Call& call) noexcept : listener_(listener), call_(call) {
  // EINVAL: more processors than a cpu_set_t has room for (1 024).
  if (::sched_getaffinity(call.tid, sizeof theirs_, &theirs_) != 0 || CPU_COUNT(&theirs_) < 2) return;
  const int here = ::sched_getcpu();
  if (here < 0 || here >= CPU_SETSIZE || !CPU_ISSET(here, &theirs_)) return;
  if (::sched_getaffinity(0, sizeof ours_, &ours_) != 0) return;
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(here, &only);
  if (!still_waiting(listener, call.id) || ::sched_setaffinity(call.tid, sizeof only, &only) != 0) return;
  ::sched_setaffinity(0, sizeof only, &only);
  held_ = true;
}

OneProcessor::~OneProcessor() {
  if (!held_) return;
  if (still_waiting(listener_, call_.id)) ::sched_setaffinity(call_.tid, sizeof theirs_, &theirs_);
  ::sched_setaffinity(0, sizeof ours_, &ours_);
}

}  // namespace belljar::broker
