// Commands whose output can still be asked for: those that run in the background, and the last ones that said more than was shown.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "belljar/cancel.h"
#include "belljar/exec_result.h"
#include "belljar/process.h"
#include "belljar/result.h"
#include "tools/spool.h"

namespace belljar::tools {

// Shared by the call that looks at it and the list. Its process, where it has one, ends with it.
struct TrackedCommand {
  std::string id;
  std::string text;
  CancelToken cancel;
  std::shared_ptr<Spool> spool = std::make_shared<Spool>();
  std::unique_ptr<Process> process;  // unset: it ran in the foreground
  std::mutex mutex;
  std::optional<ExecResult> ended;  // guarded by mutex
  bool told = false;                // guarded by mutex: its refusals were given out
};

// Safe from any thread.
class Commands {
 public:
  explicit Commands(std::size_t max_running) : max_running_(max_running) {}
  ~Commands() { end_all(); }
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  std::string next_id();
  // Errors: kResourceExhausted, as many as there may be run already.
  Result<void> check_room();
  void keep(std::shared_ptr<TrackedCommand> command);
  // Errors: kNotFound, with the ids there are.
  Result<std::shared_ptr<TrackedCommand>> find(const std::string& id);
  void end_all() noexcept;

 private:
  static constexpr std::size_t kMostEnded = 16;
  void drop_old();
  std::size_t running() const;

  const std::size_t max_running_;
  mutable std::mutex mutex_;
  // guarded by mutex_
  std::deque<std::shared_ptr<TrackedCommand>> commands_;  // oldest first
  unsigned serial_ = 0;
};

// Takes over the result of one that has ended meanwhile; nullopt while it runs.
Result<std::optional<ExecResult>> result_of(TrackedCommand& command, std::chrono::milliseconds patience);

}  // namespace belljar::tools
