#include "base/rfc3339.h"

#include <chrono>
#include <ctime>
#include <string>

#include "base/format.h"

namespace belljar {

std::string rfc3339(std::chrono::system_clock::time_point time) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  const std::time_t seconds = std::chrono::system_clock::to_time_t(whole);
  const auto micro = std::chrono::duration_cast<std::chrono::microseconds>(time - whole);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  return format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour,
                utc.tm_min, utc.tm_sec, micro.count());
}

}  // namespace belljar
