// One command in a sandbox of the cloud: its stream of events, its clocks, its end. The waiter's thread does all of it; input,
// signals and the size of a terminal may come from other threads.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "base/wake.h"
#include "belljar/sandbox.h"
#include "command/capture.h"
#include "remote/e2b/core.h"
#include "remote/e2b/events.h"
#include "remote/frames.h"
#include "remote/process.h"

namespace belljar::remote::e2b {

struct RunRequest {
  Command command;
  std::string cwd;                                   // absolute
  std::optional<std::chrono::milliseconds> timeout;  // in force already
  std::string stdin_bytes;
  bool stdin_pipe = false;
  std::optional<TerminalSize> terminal;
  CancelToken cancel;
  OutputCallback on_stdout, on_stderr;
  std::uint64_t output_bytes = 0;
  Limits limits;
  bool marked = true;    // false: a helper of ours, which must not be among those that it signals
  bool backstop = true;  // the daemon ends it, too, should we be gone by then; what may be detached has none
};

class Run final : public Followed {
 public:
  // Sends the command. Errors: kResourceExhausted; kInvalidArgument, words that are no UTF-8.
  static Result<std::shared_ptr<Run>> start(std::shared_ptr<Core> core, RunRequest request);
  ~Run() override;
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  int await_start() override;
  Result<ExecResult> finish() override;
  void cancel() noexcept override;
  void detach() noexcept override;
  Result<void> write(std::string_view bytes, std::chrono::milliseconds patience) override;
  Result<void> close_input() override;
  Result<void> resize(unsigned short rows, unsigned short columns) override;
  Result<void> signal(int number) override;

 private:
  using Clock = std::chrono::steady_clock;

  Run(std::shared_ptr<Core> core, RunRequest request);
  std::string start_message() const;
  void turn(bool until_started);
  void take_bytes();
  void take_head();
  void handle(const Event& event);
  void handle_last(std::string_view json);
  void output(command::Capture& capture, const OutputCallback& callback, const std::string& bytes);
  void look_at_wishes();
  void check_deadlines(Clock::time_point now);
  void check_silence(Clock::time_point now);
  Clock::time_point next_deadline() const;
  void stop(Reason reason, std::string message, std::chrono::milliseconds grace);
  void end_tree(int signal);
  std::chrono::milliseconds patience_of_end() const noexcept;
  void lose(std::string why);
  bool over() const noexcept { return ended_ || refused_ || gone_ || detached_seen_; }
  void feed();
  Error explain(const Complaint& complaint);
  ExecResult result();
  void set_end(ExecResult& result) const;
  std::string selector() const;
  void lose_input(const std::string& why);
  Result<void> send_input(std::string_view bytes, std::chrono::milliseconds patience, int cancel_fd);

  std::shared_ptr<Core> core_;
  RunRequest request_;
  std::string mark_;
  Wake wishes_, done_;  // readable: somebody wants its end, or leaves it; it is over
  UniqueFd past_;       // readable: it is over, and for long enough
  std::atomic<bool> cancelled_{false}, detached_{false}, input_closed_{false};
  std::atomic<int> pid_{0};
  std::mutex input_mutex_;
  std::string input_lost_;  // guarded by input_mutex_; why what was to be read did not get there

  // the waiter's
  std::unique_ptr<http::Stream> stream_;
  FrameParser frames_;
  std::string body_;  // of a reply that is no stream
  bool begun_ = false, is_stream_ = false, gone_ = false, detached_seen_ = false;
  command::Capture out_, err_;
  Clock::time_point sent_, heard_;
  std::optional<Clock::time_point> started_, kill_at_, hopeless_;
  Clock::time_point over_at_;
  std::optional<Event> ended_;
  std::optional<Error> refused_;
  bool not_run_ = false;      // refused_ is about the program: a result, not an error
  bool kill_failed_ = false;  // nothing of the service took a KILL
  std::string lost_;
  std::optional<Reason> cause_;
  std::string message_;
  std::exception_ptr thrown_;
  std::thread feeder_;
};

}  // namespace belljar::remote::e2b
