// A process in which, and below which, no sandbox gets beyond keyctl(2), by which its pid 1 leaves our keyring: the call waits for
// an answer that nobody gives, as a mount of a file system that does not answer would.
//
//   HeldStart held([] { /* starts a sandbox */ return 0; });
//   ASSERT_TRUE(held.await_call());             // a start hangs
//   held.send(SIGINT);
//   EXPECT_TRUE(held.await_all_ended(50s));      // it and all its descendants, detached ones included
//
// Or before it is tied to its parent's end, at its first prctl(2) of that kind:
//
//   HeldStart held([] { /* starts a sandbox */ return 0; }, HeldStart::At::kParentDeath);
//   ASSERT_TRUE(held.await_sandbox());           // any other process goes on
//   held.send(SIGKILL);
//   held.wait();
//   EXPECT_TRUE(held.let_all_go_on(50s));        // and nothing is left
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>

#include "base/unique_fd.h"

namespace belljar::test {

class HeldStart {
 public:
  enum class At { kKeyring, kParentDeath };
  // `act` runs in a forked child, whose exit code it returns. Neither throws nor uses gtest there.
  explicit HeldStart(const std::function<int()>& act, At at = At::kKeyring);
  // Kills the child; its detached descendants get ENOSYS from the call and go on.
  ~HeldStart();
  HeldStart(const HeldStart&) = delete;
  HeldStart& operator=(const HeldStart&) = delete;

  bool await_call(std::chrono::milliseconds patience = std::chrono::seconds(60)) const;
  // Until it is pid 1 of a pid namespace that is held.
  bool await_sandbox();
  // As if nothing held them. Whether nothing of it is left by then.
  bool let_all_go_on(std::chrono::milliseconds patience);
  void send(int signal) const;
  // Of the child itself: its exit code, or minus the signal.
  int wait();
  // Whether nothing of it is left by then.
  bool await_all_ended(std::chrono::milliseconds patience) const;

 private:
  pid_t pid_ = -1;
  UniqueFd listener_, sandbox_;
  // Takes the next call that is held; false: whose process has ended.
  bool take_call(int& pid);
  void let_go_on() const;
  std::uint64_t held_call_ = 0;
};

}  // namespace belljar::test
