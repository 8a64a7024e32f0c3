// How one command ends, the same on every backend: what happens to it goes in, what has to be done comes out (TERM, KILL), and
// at last what its result says: reason, exit code and sentence. No I/O and no clock: a test is a table.
#pragma once

#include <sys/resource.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "command/clock.h"

namespace belljar::command {

// Why a command is ended by us.
struct Cause {
  Reason reason;
  std::string message;
};
Cause cancelled();  // by its caller
Cause ended_with_sandbox();

enum class EndAction {
  kNone,
  kTerm,    // to all of it, and CONT, since a stopped process does not see TERM
  kKill,    // to all of it
  kGiveUp,  // its end was not told within the patience
};

enum class EndMode {
  kGently,  // TERM, and KILL after the grace
  kAtOnce,  // KILL
  kInside,  // as kGently, by somebody inside who was told of the grace
};

class Ending {
 public:
  using Time = Clock::Time;
  explicit Ending(const Clock::Terms& terms) noexcept : clock_(terms) {}

  Clock& clock() noexcept { return clock_; }
  const Clock& clock() const noexcept { return clock_; }

  // Something ends it. The first cause is the one that is told; kNone: it is being ended already.
  EndAction stop(Cause cause, EndMode how, Time now);
  // The same as stop(), without a cause of ours: its result is its own.
  EndAction terminate(EndMode how, Time now) noexcept;
  // KILL now, without a cause of ours: its result says what it died of.
  EndAction kill(Time now) noexcept;
  // The action that is due by `now`; to be asked at each turn. `how`: the way to end it, when its time is over. kGiveUp comes each
  // time until the clock is told() again.
  EndAction due(Time now, EndMode how = EndMode::kGently);
  // Of what has an idle time: see Clock.
  bool idle_check_due(Time now) const noexcept { return !cause_ && clock_.idle_check_due(now); }
  EndAction check_idle(Time now, std::chrono::microseconds used);
  std::optional<Time> next() const noexcept { return clock_.next(cause_.has_value()); }

  bool ending() const noexcept { return cause_.has_value(); }
  std::optional<Reason> reason() const noexcept { return cause_ ? std::optional(cause_->reason) : std::nullopt; }
  // Adds a clause to the cause's message.
  void add(const std::string& text) {
    if (cause_) cause_->message += "; " + text;
  }
  // It ended by itself after all.
  void forgive() noexcept { cause_.reset(); }

  // Reason, exit code, signal and message of a command that ended with `wait_status`, wait(2).
  void tell_exit(ExecResult& result, int wait_status) const;
  // The same of one whose end nobody told; `why` when it was not us.
  void tell_lost(ExecResult& result, const std::string& why) const;
  // A limit that the kernel holds ended it, unless we did.
  void tell_limit(ExecResult& result, Reason reason, std::string message) const;

 private:
  Clock clock_;
  std::optional<Cause> cause_;
};

// 128 + n with the reason, or the program's own code.
void set_exit(ExecResult& result, int wait_status);

// The usage that wait4(2) reports for all its processes; the memory is the largest one's.
Usage usage_of(const rusage& usage) noexcept;

// Of a command that its caller had cancelled before it was sent.
ExecResult cancelled_before_start();

}  // namespace belljar::command
