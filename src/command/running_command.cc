// The loop that all transports share. A turn first takes what has come (look), then does what is
// due, then waits. In another order a command that ended in time could be reported as timed out
// when this thread was late. over() is checked after each step, because each of them may find the
// end.
//
// Requests from other threads are one atomic number that only grows, kNone to kKill, and an eventfd
// that wakes the wait. A stricter request replaces a weaker one, and a weaker one after it is
// ignored, so two threads that ask at once cannot soften an end that has begun. After detach() the
// caller's token and the timeout do not count any more; terminate and kill still do.
#include "command/running_command.h"

#include <chrono>
#include <ctime>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/result.h"
#include "belljar/units.h"
#include "command/clock.h"
#include "command/ending.h"
#include "command/request.h"
#include "command/streams.h"

namespace belljar::command {
namespace {

using Steady = std::chrono::steady_clock;

}  // namespace

RunningCommand::RunningCommand(Request request, Clock::Span patience, Clock::Span slack)
    : request_(std::move(request)),
      ending_({.timeout = request_.timeout, .idle = {}, .grace = request_.limits.kill_grace, .patience = patience, .slack = slack}),
      streams_(request_) {}

Result<ExecResult> RunningCommand::finish() {
  while (!over()) turn();
  Result<ExecResult> end = result();
  if (streams_.thrown() == nullptr) return end;
  if (end) give_back(*end);
  std::rethrow_exception(streams_.thrown());
}

// What has come is taken before what is due: a command that ended in time has.
void RunningCommand::turn() {
  look();
  if (over()) return;
  if (detached()) ending_.clock().let_run();
  carry_out(ending_.due(Steady::now(), end_mode()));
  if (over()) return;
  wait(ending_.next());
  if (!over()) handle_control();
}

void RunningCommand::stop(Cause cause, EndMode how) { carry_out(ending_.stop(std::move(cause), how, Steady::now())); }

void RunningCommand::carry_out(EndAction what) {
  if (what == EndAction::kNone || over()) return;
  advance_end(what);
  if (what != EndAction::kGiveUp) ending_.clock().told(Steady::now());
}

void RunningCommand::take(Stream stream, std::string_view bytes) {
  if (auto cause = streams_.take(stream, bytes)) stop(*std::move(cause), EndMode::kAtOnce);
}

void RunningCommand::handle_control() {
  control_wake_.take();
  EndRequest request = end_request_.load();
  if (request < EndRequest::kCancel && token_counts() && request_.cancel.cancelled()) request = EndRequest::kCancel;
  if (request <= handled_) return;
  handled_ = request;
  if (request == EndRequest::kCancel) stop(cancelled(), end_mode());
  else carry_out(request == EndRequest::kKill ? ending_.kill(Steady::now()) : ending_.terminate(end_mode(), Steady::now()));
}

void RunningCommand::request_end(EndRequest request) noexcept {
  EndRequest before = end_request_.load();
  while (before < request && !end_request_.compare_exchange_weak(before, request)) {
  }
  control_wake_.ring();
}

void RunningCommand::detach() noexcept {
  detached_.store(true);
  streams_.mute();
  control_wake_.ring();
}

Error no_input(std::string reason) {
  return Error(Code::kFailedPrecondition, "cannot write to the command's stdin").reason(std::move(reason));
}

Error not_read(std::chrono::milliseconds patience) {
  return Error(Code::kDeadlineExceeded, "cannot write to the command's stdin")
      .reason(format("it did not read for {}", to_string(patience)));
}

Error no_terminal() {
  return Error(Code::kFailedPrecondition, "cannot resize the terminal").reason("the command was spawned without one");
}

timespec until(std::optional<Clock::Time> deadline) {
  const auto now = Steady::now();
  if (!deadline || *deadline <= now) return {};
  const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(*deadline - now).count();
  return {static_cast<time_t>(left / 1'000'000'000), static_cast<long>(left % 1'000'000'000)};
}

}  // namespace belljar::command
