// A thread that reads one command to its end, and what came of it. For handles of commands.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/thread.h"
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

// A command of type `Command`, made of `arguments`, that follows `run`. Without a thread to read it nobody would end it either:
// then it is ended here, and `sandbox` gets back what nobody read.
template <class Command, class Run, class Sandbox, class... Arguments>
Result<std::shared_ptr<Command>> follow(const std::shared_ptr<Run>& run, Sandbox& sandbox, Arguments&&... arguments) {
  try {
    return std::make_shared<Command>(std::forward<Arguments>(arguments)...);
  } catch (const std::system_error& failed) {
    run->detach();  // no callback any more
    run->cancel();
    ExecResult unread = run->finish();
    sandbox.give_back(unread);
    return no_thread(failed, "cannot follow a command");
  }
}

// Takes the first command that `is_one` says yes to out of `home`, where detached ones lie until they have ended: its pipes and
// eventfds are open for as long as it lies there.
template <class Home, class IsOne>
void leave_home(const std::weak_ptr<Home>& weak, const IsOne& is_one) {
  const auto home = weak.lock();
  if (home == nullptr) return;
  typename decltype(home->commands)::value_type left;  // destroyed without the lock
  const std::lock_guard lock(home->mutex);
  const auto found = std::ranges::find_if(home->commands, is_one);
  if (found == home->commands.end()) return;
  left = std::move(*found);
  home->commands.erase(found);
}

}  // namespace belljar::session
