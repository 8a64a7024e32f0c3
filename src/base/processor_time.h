// The processor time that the calling thread has used.
#pragma once

#include <time.h>

#include <chrono>

namespace belljar {

// clock_gettime(2), CLOCK_THREAD_CPUTIME_ID.
inline std::chrono::nanoseconds processor_time() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace belljar
