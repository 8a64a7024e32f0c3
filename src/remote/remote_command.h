// One command in a sandbox elsewhere, as every cloud has it: what the service did not take, what was lost on the way, its end. A
// cloud adds how it is sent, heard of, fed and signalled.
#pragma once

#include <signal.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>

#include "belljar/error.h"
#include "command/running_command.h"
#include "remote/commands.h"

namespace belljar::remote {

inline constexpr std::chrono::seconds kHopeless{5};      // after the last signal: its end is not waited for any more
inline constexpr std::chrono::seconds kEnding{5};        // for all that is asked of the service to end a command
inline constexpr std::chrono::seconds kHelperEnding{1};  // the same, of a helper, whose own end others wait for
inline constexpr char kNotStarted[] = "cannot start the command in the sandbox";

class RemoteCommand : public command::RunningCommand {
 protected:
  using Steady = std::chrono::steady_clock;
  using command::RunningCommand::RunningCommand;

  // --- what a cloud adds

  virtual const Commands& commands() const noexcept = 0;
  // Signals the whole tree, as far as that is possible.
  virtual void end_tree(int signal) = 0;
  // Whether the first signal has somebody to go to.
  virtual bool can_be_told() const { return true; }
  // Its end was not told.
  virtual void give_up() = 0;
  // It is detached.
  virtual void let_go() {}
  // It is over: what the transport holds of it is given back.
  virtual void close() = 0;

  // --- what it uses

  bool over() const override { return ended_ || refused_ || gone_ || left_; }
  // Ends a command that cannot be seen any more: it must not run on.
  void lose(std::string why);
  static Error not_started(const Error& why);
  // Input for the command did not get there. From any thread.
  void lose_input(const std::string& why);
  // The sandbox ends, and this command with it.
  virtual bool ends_with_sandbox() const { return commands().ending(); }

  void advance_end(command::EndAction act) override;
  command::EndMode end_mode() const override { return commands().ending() ? command::EndMode::kAtOnce : command::EndMode::kGently; }
  void handle_control() override;
  Result<ExecResult> result() override;

  bool is_helper() const noexcept { return request_.purpose == command::Purpose::kHelper; }

  std::atomic<bool> input_closed_{false};
  std::atomic<int> pid_{0};
  bool started_ = false, gone_ = false, left_ = false;
  std::optional<int> ended_;  // its status, as wait(2) has it
  std::optional<Error> refused_;
  bool not_run_ = false;  // refused_ is about the program: a result, not an error

 private:
  bool was_told_ = false;  // to end
  std::string lost_;
  std::mutex input_mutex_;
  std::string input_lost_;  // guarded by input_mutex_
};

}  // namespace belljar::remote
