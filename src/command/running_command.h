// One command while it runs, on any backend: the loop of its waiter, its clock, what becomes of its output, its end. A backend adds
// the transport: how it is sent, heard of, fed and signalled.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/wake.h"
#include "belljar/exec_result.h"
#include "belljar/result.h"
#include "command/clock.h"
#include "command/ending.h"
#include "command/request.h"
#include "command/streams.h"

namespace belljar::command {

class RunningCommand {
 public:
  virtual ~RunningCommand() = default;
  RunningCommand(const RunningCommand&) = delete;
  RunningCommand& operator=(const RunningCommand&) = delete;

  // --- of the waiter's thread

  // Blocks until it is known whether the command was started; its pid inside, or 0. What is due or cancelled before that is left
  // to finish(), which ends it.
  virtual int await_start() = 0;
  // Blocks until the command has ended. What a callback threw comes out of here, after the command's end. Errors: it was never
  // started, and that was not the program's fault.
  Result<ExecResult> finish();
  // Takes back a result of finish() that nobody will read.
  virtual void give_back(ExecResult& /*unread*/) {}

  // --- from any thread

  // How somebody wants it to end; what is asked for later may only be stricter. kCancel: as a cancellation, which its result tells;
  // the others have no cause of ours.
  enum class EndRequest : unsigned char { kNone, kTerminate, kCancel, kKill };
  void request_end(EndRequest request) noexcept;
  // No timeout, no token and no callback any more: it belongs to the sandbox.
  virtual void detach() noexcept;
  void mute() noexcept { streams_.mute(); }
  virtual Result<void> write(std::string_view bytes, std::chrono::milliseconds patience) = 0;
  virtual Result<void> close_input() = 0;
  virtual Result<void> resize(unsigned short rows, unsigned short columns) = 0;
  virtual Result<void> signal(int number) = 0;

 protected:
  using Time = Clock::Time;

  // `patience`, `slack`: Clock::Terms.
  RunningCommand(Request request, Clock::Span patience, Clock::Span slack = {});
  bool valid() const noexcept { return control_wake_.valid(); }

  // --- what a transport is; all of the waiter's thread

  virtual bool over() const = 0;
  // Takes what is known already, without a wait.
  virtual void look() {}
  // Until something comes, one of control_fds() is readable, or the deadline; takes what came.
  virtual void wait(std::optional<Time> deadline) = 0;
  // Its end has to begin, or to go on. Never once it is over().
  virtual void advance_end(EndAction act) = 0;
  // How it would be ended now, where there is time for a grace.
  virtual EndMode end_mode() const { return EndMode::kGently; }
  // The command's result, once it is over().
  virtual Result<ExecResult> result() = 0;
  // Acts on a request or a token that asks for its end.
  virtual void handle_control();

  // --- what it uses

  void turn();
  void stop(Cause cause, EndMode how);
  void carry_out(EndAction act);
  void take(Stream stream, std::string_view bytes);
  // For poll(2); -1: none. The first is rung, the second the caller's token.
  std::array<int, 2> control_fds() const noexcept { return {control_wake_.get(), token_counts() ? request_.cancel.fd() : -1}; }
  bool wants_end() const noexcept {
    return end_request_.load() != EndRequest::kNone || (token_counts() && request_.cancel.cancelled());
  }
  bool detached() const noexcept { return detached_.load(); }

  Request request_;
  Ending ending_;
  Streams streams_;
  Wake control_wake_;

 private:
  bool token_counts() const noexcept { return !ending_.ending() && !detached_.load() && handled_ < EndRequest::kCancel; }
  std::atomic<bool> detached_{false};
  std::atomic<EndRequest> end_request_{EndRequest::kNone};
  EndRequest handled_ = EndRequest::kNone;  // of the waiter's thread
};

// --- what they all say

Error no_input(std::string reason);                   // of a write to its stdin
Error not_read(std::chrono::milliseconds patience);   // the same, that took too long
Error no_terminal();                                  // of a resize
timespec until(std::optional<Clock::Time> deadline);  // from now, for ppoll(2)

}  // namespace belljar::command
