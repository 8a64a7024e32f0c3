// One command of a live sandbox while it runs: its streams, its clocks, its end. Owned by the thread that waits for it.
#pragma once

#include <poll.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "base/wake.h"
#include "belljar/sandbox.h"
#include "command/capture.h"
#include "session/core.h"
#include "session/tree_kill.h"

namespace belljar::session {

// What to do with one command, for exec and spawn alike.
struct RunRequest {
  Command command;
  std::optional<std::chrono::milliseconds> timeout;  // in force already: defaults and caps applied
  std::string stdin_bytes;
  bool stdin_pipe = false;
  std::optional<TerminalSize> terminal;
  CancelToken cancel;
  OutputCallback on_stdout, on_stderr;
  std::uint64_t output_bytes = 0;
  std::vector<std::string> allowed_domains;
  // Set: somebody else reads and writes these (src/keeper); the command gets them as they are, an invalid one is /dev/null. With a
  // terminal only the last counts, when it is valid: stderr goes there.
  std::optional<std::array<UniqueFd, 3>> handed;
};

class Running {
 public:
  // Sends the command to the sandbox, or leaves that to who waits for it where pid 1 takes no more now. Errors: as Sandbox::exec.
  static Result<std::unique_ptr<Running>> start(std::shared_ptr<Core> core, RunRequest request);
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  // Blocks until it is known whether the command was started; its pid inside, or 0 when it could not be.
  int await_start();
  // Blocks until the command has ended. What a callback threw comes out of here, after the command's end.
  ExecResult finish();
  // From another thread: end the command (as a cancellation).
  void cancel() noexcept;
  // From another thread: no timeout, no cancellation and no callback any more; finish() goes on reading until the end.
  void detach() noexcept { detached_.store(true); }

  UniqueFd take_input() noexcept { return std::move(input_); }  // with stdin_pipe or a terminal
  // With `handed` and a terminal: its other side, which nobody else reads.
  UniqueFd take_master() noexcept { return std::move(handed_master_); }
  std::uint32_t id() const noexcept { return id_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Stream {
    UniqueFd fd;
    command::Capture capture;
    const OutputCallback* callback;
    std::uint64_t read = 0;  // since the end of the command
  };

  Running(std::shared_ptr<Core> core, RunRequest request);
  Result<void> open_streams(launch::ExecRequest& request);
  Result<void> open_terminal(launch::ExecRequest& request);
  Result<void> open_input(launch::ExecRequest& request);
  Result<void> take_handed(launch::ExecRequest& request);
  Result<void> send();
  void send_in_time();
  void look();
  void turn();
  void drain();
  bool read_some(Stream& stream);
  void check_deadlines(Clock::time_point now);
  std::optional<Clock::time_point> next_deadline() const;
  void stop(Reason reason, std::string message, std::chrono::milliseconds grace);
  void kill();
  void look_for_pid1();
  ExecResult result();
  void set_end(ExecResult& result);

  std::shared_ptr<Core> core_;
  std::optional<Core::Use> use_;  // until the command's end, however long the handle is held; so the next
  std::unique_ptr<LiveOutlet::Opened> opened_;
  RunRequest request_;
  std::optional<launch::PackedExec> unsent_;  // pid 1 had no room for it yet
  UniqueFd room_;                             // while unsent_: tells of that
  std::uint32_t id_ = 0;
  std::shared_ptr<CommandState> state_;  // once it is sent
  UniqueFd ends_[3];                     // the command's, until it has them
  UniqueFd input_;
  UniqueFd handed_master_;
  Stream out_, err_;
  Wake own_cancel_;
  std::atomic<bool> detached_{false};

  Clock::time_point sent_;
  std::optional<launch::Event> started_, failed_, exited_;
  std::optional<runtime::Finish> limits_;
  bool gone_ = false;
  std::optional<Reason> cause_;
  std::string message_;
  CommandTree tree_;  // at the time it was told to end
  Orphans orphans_;   // since then
  std::optional<Clock::time_point> kill_at_;
  int silent_looks_ = 0;
  std::uint64_t received_ = 0;  // of Core::events_received(), at the last look
  std::exception_ptr thrown_;
};

}  // namespace belljar::session
