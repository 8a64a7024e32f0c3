// One command of a live sandbox while it runs: its pipes or its terminal, what its pid 1 tells of it, the end of its tree. Owned by
// the thread that waits for it.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "command/running_command.h"
#include "session/live_instance.h"
#include "session/tree_kill.h"

namespace belljar::session {

class LiveCommand final : public command::RunningCommand {
 public:
  // Set: somebody else reads and writes these (src/keeper); the command gets them as they are, an invalid one is /dev/null. With a
  // terminal only the last counts, when it is valid: stderr goes there.
  using StdioFds = std::optional<std::array<UniqueFd, 3>>;

  // Sends the command to the sandbox, or leaves that to who waits for it where pid 1 takes no more now. Errors: as Sandbox::exec.
  static Result<std::shared_ptr<LiveCommand>> start(std::shared_ptr<LiveInstance> instance, command::Request request,
                                                    StdioFds handed = {});
  ~LiveCommand() override;

  int await_start() override;
  void give_back(ExecResult& unread) override { instance_->give_back(unread); }
  Result<void> write(std::string_view bytes, std::chrono::milliseconds patience) override;
  Result<void> close_input() override;
  Result<void> resize(unsigned short rows, unsigned short columns) override;
  Result<void> signal(int number) override;

  // With handed ends and a terminal: its other side, which nobody else reads.
  UniqueFd take_master() noexcept { return std::move(pty_master_); }

 private:
  using Steady = std::chrono::steady_clock;
  using Stream = command::Stream;

  LiveCommand(std::shared_ptr<LiveInstance> instance, command::Request request, StdioFds handed);
  Result<void> open_streams(launch::ExecRequest& request);
  Result<void> open_terminal(launch::ExecRequest& request);
  Result<void> open_input(launch::ExecRequest& request);
  Result<void> use_stdio_fds(launch::ExecRequest& request);
  Result<void> lend(int end, launch::ExecRequest& request);
  Result<void> send();
  void send_in_time();
  bool over() const override { return exited_ || failed_ || gone_ || (unsent_ && ending_.ending()); }
  void look() override;
  void wait(std::optional<Time> deadline) override;
  void advance_end(command::EndAction act) override;
  command::EndMode end_mode() const override { return started_ ? command::EndMode::kGently : command::EndMode::kAtOnce; }
  Result<ExecResult> result() override;
  bool read_some(Stream stream);
  void drain();
  void kill_tree();
  void check_pid1();
  void set_end(ExecResult& result);

  std::shared_ptr<LiveInstance> instance_;
  std::optional<LiveInstance::Use> use_;  // until the command's end, however long the handle is held; so the next
  std::unique_ptr<LiveEgress::HostGrant> opened_;
  StdioFds stdio_fds_;
  std::optional<launch::PackedExec> unsent_;  // pid 1 had no room for it yet
  UniqueFd room_;                             // while unsent_: tells of that
  std::atomic<std::uint32_t> id_{0};
  std::shared_ptr<CommandState> state_;  // once it is sent
  UniqueFd ends_[3];                     // the command's, until it has them
  std::mutex input_mutex_;               // around writes, which must not mix
  UniqueFd input_;                       // guarded by input_mutex_; with stdin_pipe or a terminal
  UniqueFd pty_master_;
  UniqueFd out_, err_;
  std::uint64_t drained_ = 0;  // read of one of them since the end
  std::atomic<bool> ended_{false};

  std::optional<launch::Event> started_, failed_, exited_;
  std::optional<runtime::Finish> limits_;
  bool gone_ = false;
  std::string lost_ = "the sandbox ended before the command did";
  bool was_told_ = false;  // to end
  CommandTree tree_;       // at that time
  Orphans orphans_;        // since then
  int silent_looks_ = 0;
  std::uint64_t received_ = 0;  // of LiveInstance::events_received(), at the last look
};

}  // namespace belljar::session
