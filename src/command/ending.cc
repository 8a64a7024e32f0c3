// The table of how a command ends. The first cause wins: after a timeout has begun the end, neither
// a cancellation nor a limit changes what the result says, because the caller has to see what began
// it.
//
// A command that was ended here is never reported as a success, even when it handles TERM and exits
// with 0. A timeout is 124 as with timeout(1); a limit is 137, since it ends by KILL; a
// cancellation keeps a code of 128 and more, by which shells say that a signal was the reason, and
// is 143 otherwise. terminate() and kill() without a cause are the caller's own signals, so the
// command's own result stands.
#include "command/ending.h"

#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "base/format.h"
#include "belljar/exec_result.h"
#include "belljar/units.h"

namespace belljar::command {
namespace {

constexpr int kTimedOut = 124, kTold = 128 + SIGTERM, kKilled = 128 + SIGKILL;

// Never a success: it was told to end. Its own code says more where it has one for that.
int exit_code_of(Reason reason, int own) noexcept {
  if (reason == Reason::kTimeout || reason == Reason::kIdle) return kTimedOut;
  if (reason != Reason::kCancelled) return kKilled;
  return own >= 128 ? own : kTold;
}

}  // namespace

Cause cancelled() { return {Reason::kCancelled, "cancelled by the caller"}; }
Cause ended_with_sandbox() { return {Reason::kCancelled, "the sandbox ended before the command did"}; }

EndAction Ending::stop(Cause cause, EndMode how, Time now) {
  if (cause_) return EndAction::kNone;
  cause_ = std::move(cause);
  return terminate(how, now);
}

EndAction Ending::terminate(EndMode how, Time now) noexcept {
  if (how == EndMode::kAtOnce || clock_.terms().grace.count() <= 0) return kill(now);
  clock_.term(now, how == EndMode::kInside);
  return EndAction::kTerm;
}

EndAction Ending::kill(Time now) noexcept {
  clock_.kill(now);
  return EndAction::kKill;
}

EndAction Ending::due(Time now, EndMode how) {
  if (!cause_ && clock_.wall_over(now)) return stop({Reason::kTimeout, timeout_message(*clock_.terms().timeout)}, how, now);
  if (clock_.kill_due(now)) return kill(now);
  return clock_.hopeless(now) ? EndAction::kGiveUp : EndAction::kNone;
}

EndAction Ending::check_idle(Time now, std::chrono::microseconds used) {
  if (cause_ || !clock_.idle_over(now, used)) return EndAction::kNone;
  return stop({Reason::kIdle, format("no input, output or processor use for {}", to_string(*clock_.terms().idle))},
              EndMode::kGently, now);
}

void Ending::tell_exit(ExecResult& result, int wait_status) const {
  set_exit(result, wait_status);
  if (!cause_) return;
  result.reason = cause_->reason;
  result.message = cause_->message;
  result.exit_code = exit_code_of(cause_->reason, result.exit_code);
}

void Ending::tell_lost(ExecResult& result, const std::string& why) const {
  result.signal = SIGKILL;
  result.reason = cause_ ? cause_->reason : Reason::kCancelled;
  result.message = cause_ ? cause_->message : why;
  result.exit_code = exit_code_of(result.reason, kKilled);
}

void Ending::tell_limit(ExecResult& result, Reason reason, std::string message) const {
  if (cause_) return;
  result.reason = reason;
  result.message = std::move(message);
  if (result.signal) result.exit_code = 128 + *result.signal;
}

void set_exit(ExecResult& result, int wait_status) {
  if (!WIFSIGNALED(wait_status)) {
    result.reason = Reason::kExited;
    result.exit_code = WEXITSTATUS(wait_status);
    return;
  }
  const int signal = WTERMSIG(wait_status);
  const char* name = sigabbrev_np(signal);
  result.reason = Reason::kSignalled;
  result.signal = signal;
  result.exit_code = 128 + signal;
  result.message = name != nullptr ? format("killed by SIG{}", name) : format("killed by signal {}", signal);
}

Usage usage_of(const rusage& usage) noexcept {
  const auto micro = [](const timeval& time) { return std::chrono::microseconds(time.tv_sec * 1'000'000LL + time.tv_usec); };
  Usage used{.cpu_user = micro(usage.ru_utime), .cpu_system = micro(usage.ru_stime), .peak_memory = {}};
  if (usage.ru_maxrss > 0) used.peak_memory = Bytes{static_cast<std::uint64_t>(usage.ru_maxrss) * 1024};
  return used;
}

ExecResult cancelled_before_start() {
  ExecResult result;
  set_exit(result, SIGTERM);
  result.reason = Reason::kCancelled;
  result.message = cancelled().message;
  return result;
}

}  // namespace belljar::command
