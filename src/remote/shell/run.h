// One command in a sandbox where only shell text runs: sent once, then looked at until its end. The waiter's thread does all of it;
// input and signals may come from other threads.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "base/wake.h"
#include "belljar/sandbox.h"
#include "command/capture.h"
#include "remote/process.h"
#include "remote/shell/core.h"
#include "remote/shell/looked.h"

namespace belljar::remote::shell {

struct RunRequest {
  Command command;
  std::string cwd;                                   // absolute
  std::optional<std::chrono::milliseconds> timeout;  // in force already
  std::string stdin_bytes;
  bool stdin_pipe = false;
  CancelToken cancel;
  OutputCallback on_stdout, on_stderr;
  std::uint64_t output_bytes = 0;
  Limits limits;
  bool helper = false;  // one of ours, whose caller has no time once it is cancelled
};

class Run final : public Followed {
 public:
  // Sends nothing yet. Errors: kResourceExhausted.
  static Result<std::shared_ptr<Run>> start(std::shared_ptr<Core> core, RunRequest request);
  ~Run() override = default;
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

  // What was taken of one stream.
  struct Stream {
    command::Capture capture;
    const OutputCallback& callback;
    std::uint64_t base = 0, at = 0;
    bool counted() const noexcept { return capture.over() && !callback; }
  };

  Run(std::shared_ptr<Core> core, RunRequest request);
  void turn(bool until_started);
  void begin(bool until_started);
  void end_unsent(const Error& why);
  std::string start_script() const;
  void look(bool until_started);
  std::string look_words(bool until_started) const;
  void take(const Said& said);
  void take(Stream& stream, const Piece& piece);
  void explain(const Looked& looked);
  void look_at_wishes();
  void check_deadlines(Clock::time_point now);
  Clock::time_point next_deadline() const;
  void stop(Reason reason, std::string message, std::chrono::milliseconds grace);
  void end_tree(int signal, std::chrono::milliseconds patience);
  void lose(std::string why);
  void let_go();
  int wake_fd() const noexcept { return cause_ ? wishes_.get() : wake_.get(); }
  bool over() const noexcept { return ended_ || refused_ || gone_ || detached_seen_; }
  std::string in_directory() const;
  Error not_started(const Error& why) const;
  ExecResult result();
  void set_end(ExecResult& result) const;
  void lose_input(const std::string& why);
  Result<std::string> put(std::string_view piece, unsigned number, Clock::time_point deadline) const;

  std::shared_ptr<Core> core_;
  RunRequest request_;
  unsigned number_ = 0;
  std::string mark_;
  Wake wishes_;    // readable: somebody wants its end, or leaves it
  UniqueFd wake_;  // readable: wishes_ is, or the token of the caller
  std::atomic<bool> cancelled_{false}, detached_{false}, input_closed_{false};
  std::atomic<int> pid_{0};
  std::atomic<unsigned> pieces_{0};  // of stdin, sent
  std::mutex input_mutex_;
  std::string input_lost_;  // guarded by input_mutex_; why what was to be read did not get there

  // the waiter's
  bool sent_off_ = false;
  bool unsure_ = false;  // whether what was sent began
  bool gone_ = false, detached_seen_ = false;
  std::string start_error_;
  unsigned nonsense_ = 0, good_ = 0;  // answers in a row
  std::size_t budget_ = 0;
  Stream out_, err_;
  Clock::time_point sent_;
  std::optional<Clock::time_point> started_, kill_at_, hopeless_;
  Clock::time_point over_at_;
  std::optional<Looked> ended_;
  std::optional<Error> refused_;
  bool not_run_ = false;  // refused_ is about the program: a result, not an error
  std::string lost_;
  std::optional<Reason> cause_;
  std::string message_;
  std::exception_ptr thrown_;
};

}  // namespace belljar::remote::shell
