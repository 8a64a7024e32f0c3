#include "support/clock.h"

#include <ctime>

namespace belljar::test {

void let_the_clock_tick() {
  timespec begin{};
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &begin);  // a ctime may be that fine, and the coarse clock lags behind
  do ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  while (now.tv_sec < begin.tv_sec || (now.tv_sec == begin.tv_sec && now.tv_nsec <= begin.tv_nsec));
}

}  // namespace belljar::test
