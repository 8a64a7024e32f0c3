// One command in a sandbox where only shell text runs: sent once, then asked for its state until its end. Input and signals may
// come from other threads.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "remote/remote_command.h"
#include "remote/shell/command_status.h"
#include "remote/shell/shell_instance.h"

namespace belljar::remote::shell {

class ShellCommand final : public RemoteCommand {
 public:
  // Sends nothing yet. Errors: kResourceExhausted.
  static Result<std::shared_ptr<ShellCommand>> start(std::shared_ptr<ShellInstance> instance, command::Request request);
  ~ShellCommand() override = default;

  int await_start() override;
  Result<void> write(std::string_view bytes, std::chrono::milliseconds patience) override;
  Result<void> close_input() override;
  Result<void> resize(unsigned short rows, unsigned short columns) override;
  Result<void> signal(int number) override;

 private:
  // How far one stream was taken.
  struct Position {
    std::uint64_t base = 0, at = 0;
  };

  ShellCommand(std::shared_ptr<ShellInstance> instance, command::Request request);
  const Commands& commands() const noexcept override { return *instance_; }
  void wait(std::optional<Time> due) override;
  void begin();
  void end_unsent(const Error& why);
  std::string start_script() const;
  void poll_status();
  std::string poll_arguments() const;
  void handle_output(const ScriptOutput& said);
  void add_piece(command::Stream stream, const OutputPiece& piece);
  void explain(const CommandStatus& status);
  void advance_end(command::EndAction act) override;
  void end_tree(int signal) override { end_tree(signal, kEnding); }
  void end_tree(int signal, std::chrono::milliseconds patience) const;
  void give_up() override { lose("its end was not told"); }
  void let_go() override;
  void close() override;
  int wake_fd() const noexcept { return ending_.ending() ? control_wake_.get() : wake_.get(); }
  std::string in_directory() const;
  Result<std::string> put(std::string_view piece, unsigned number, Time deadline) const;

  std::shared_ptr<ShellInstance> instance_;
  unsigned number_ = 0;
  std::string mark_;
  UniqueFd wake_;                    // readable: control_wake_ is, or the token of the caller
  std::atomic<unsigned> pieces_{0};  // of stdin, sent

  // the waiter's
  bool until_started_ = false;  // only its start is waited for
  bool sent_off_ = false;
  bool unsure_ = false;  // whether what was sent began
  std::string start_error_;
  unsigned nonsense_ = 0, good_ = 0;  // answers in a row
  std::size_t budget_ = 0;
  Position out_, err_;
  std::optional<Time> due_;
};

}  // namespace belljar::remote::shell
