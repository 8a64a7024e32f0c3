// A thread that reads one command to its end, and what came of it. For handles of commands.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "belljar/exec_result.h"
#include "belljar/result.h"

namespace belljar::session {

class Follower {
 public:
  // `read` runs on the thread, calls the caller's callbacks and lets out what they throw. It must own what it uses: where a
  // callback destroys the last handle of its own command, the thread outlives the Follower. `unread` gets a result that nobody
  // waited for. `at_end` runs on the thread once the end is known, and may destroy the Follower as well. Both may be empty.
  struct Work {
    std::function<Result<ExecResult>()> read;
    std::function<void(ExecResult&)> unread;
    std::function<void()> at_end;
  };
  explicit Follower(Work work);
  ~Follower();  // waits for the end, unless that is the thread itself
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  // As Process::wait; throws what a callback threw.
  Result<std::optional<ExecResult>> wait(std::optional<std::chrono::milliseconds> patience);
  bool ended() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace belljar::session
