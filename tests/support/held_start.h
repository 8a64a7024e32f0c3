// A process in which, and below which, no sandbox gets beyond keyctl(2), by which its pid 1 leaves our keyring: the call waits for
// an answer that nobody gives, as a mount of a file system that does not answer would.
//
//   HeldStart held([] { /* starts a sandbox */ return 0; });
//   ASSERT_TRUE(held.await_call());             // a start hangs
//   held.send(SIGINT);
//   EXPECT_TRUE(held.await_all_ended(50s));      // it and all its descendants, detached ones included
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>

#include "base/unique_fd.h"

namespace belljar::test {

class HeldStart {
 public:
  // `act` runs in a forked child, whose exit code it returns. Neither throws nor uses gtest there.
  explicit HeldStart(const std::function<int()>& act);
  // Kills the child; its detached descendants get ENOSYS from the call and go on.
  ~HeldStart();
  HeldStart(const HeldStart&) = delete;
  HeldStart& operator=(const HeldStart&) = delete;

  bool await_call(std::chrono::milliseconds patience = std::chrono::seconds(60)) const;
  void send(int signal) const;
  // Of the child itself: its exit code, or minus the signal.
  int wait();
  // Whether nothing of it is left by then.
  bool await_all_ended(std::chrono::milliseconds patience) const;

 private:
  pid_t pid_ = -1;
  UniqueFd listener_;
};

}  // namespace belljar::test
