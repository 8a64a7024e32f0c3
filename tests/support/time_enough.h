// For tests of a timeout whose command has something to do before it is reached: what is tried gets more time until that was
// enough.
#pragma once

#include <chrono>

namespace belljar::test {

// What `attempt(timeout)` came to with the first timeout that was `enough(result)`; with the last one, of a minute or more, at
// worst.
template <class Attempt, class Enough>
auto with_time_enough(Attempt attempt, Enough enough, std::chrono::milliseconds timeout = std::chrono::milliseconds(300)) {
  for (;; timeout *= 6) {
    auto result = attempt(timeout);
    if (enough(result) || timeout >= std::chrono::seconds(60)) return result;
  }
}

}  // namespace belljar::test
