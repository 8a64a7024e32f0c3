// Waits for what happens beside the test: polls each 5 ms, and is false when that does not come within `limit`.
// The limit is no expectation: it is for a machine that hangs, and a loaded one does not reach it.
#pragma once

#include <chrono>
#include <thread>

namespace belljar::test {

template <class Condition>
bool eventually(Condition holds, std::chrono::milliseconds limit = std::chrono::seconds(60)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace belljar::test
