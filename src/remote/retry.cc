#include "remote/retry.h"

#include <chrono>
#include <cstdint>
#include <thread>

#include "http/client.h"

namespace belljar::remote {

bool rest(int turn, const http::Reply& reply, http::Clock::time_point deadline) {
  // Compared as numbers: what a server names may be more than a clock can count.
  const std::int64_t pause = reply.retry_seconds.value_or(turn);
  const auto left = std::chrono::floor<std::chrono::seconds>(deadline - http::Clock::now()).count();
  if (pause < 0 || pause >= left) return false;
  std::this_thread::sleep_for(std::chrono::seconds(pause));
  return true;
}

}  // namespace belljar::remote
