// The few threads that all live sandboxes of a process share: starters make pid 1s, loops serve them.
//
// A thread for each sandbox would be simpler and does not scale: pid 1 of a sandbox begins as a copy of this process, so each
// thread's stack, here already, is copied into each sandbox made later. 500 sandboxes with a thread each cost 2.3 MiB each, and
// more the more there are.
//
// A pid 1 dies with the thread that made it (PR_SET_PDEATHSIG), so starters never end while the process lives. Hence the one
// instance, made at its first use and never destroyed.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "base/wake.h"
#include "belljar/result.h"

namespace belljar::session {

using LoopTime = std::chrono::steady_clock::time_point;

// An object that a loop serves.
class LoopHandler {
 public:
  virtual ~LoopHandler() = default;
  // On the loop's thread. `ready`: bit N for a watch with tag N that is ready; 0: its time has come. Returns when to be called at
  // the latest. Must not block for longer than moments: others wait meanwhile.
  virtual std::optional<LoopTime> turn(std::uint32_t ready) = 0;
};

struct Watch {
  int fd = -1;
  short events = 0;  // poll(2)
  unsigned tag = 0;  // < 32
};

class Loop {
 public:
  static Result<std::unique_ptr<Loop>> create();
  // `served` gets turns from now on, the first at once. Errors: kResourceExhausted from the kernel; then it gets none.
  Result<std::uint64_t> add(LoopHandler& served, std::span<const Watch> watches);
  // No turn of it runs, or will, once this returns. Not from within a turn.
  void drop(std::uint64_t id) noexcept;
  // From within a turn: `fd` is not looked at any more.
  void ignore(int fd) noexcept;

 private:
  struct Entry {
    LoopHandler* served = nullptr;
    std::vector<int> fds;
    std::optional<LoopTime> due;
  };
  Loop() = default;
  [[noreturn]] void run();
  void give_turn(std::uint64_t id, std::uint32_t ready);
  void set_due(std::uint64_t id, Entry& entry, std::optional<LoopTime> due);

  UniqueFd epoll_;
  Wake wake_;
  std::thread thread_;
  std::mutex mutex_;  // held during turns
  // guarded by mutex_
  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, Entry> entries_;
  std::set<std::pair<LoopTime, std::uint64_t>> due_;
};

class Reactor {
 public:
  // The one of this process: after a fork(2) the child has another. Errors: kResourceExhausted.
  static Result<Reactor*> shared();
  // Runs `job` on a starter.
  void run_on_starter(std::function<void()> job);
  Loop& next_loop() noexcept;

 private:
  Reactor() = default;
  Result<void> fill();
  [[noreturn]] void serve_jobs();

  std::size_t wanted_ = 0;  // of each: 0 until the first fill()
  std::vector<std::unique_ptr<Loop>> loops_;
  std::vector<std::thread> starters_;
  std::mutex mutex_;
  std::condition_variable work_;
  std::deque<std::function<void()>> jobs_;  // guarded by mutex_
  std::size_t next_ = 0;                    // guarded by mutex_
};

}  // namespace belljar::session
