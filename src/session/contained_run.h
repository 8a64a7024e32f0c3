// One command in a container while it runs: its records, its clocks, its end. The waiter's thread does all of it; input, signals
// and the size of a terminal may come from other threads. A thread of its own holds the timeout while a callback keeps the waiter.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backend/container/channel.h"
#include "base/format.h"
#include "base/wake.h"
#include "belljar/sandbox.h"
#include "command/capture.h"
#include "runtime/violations.h"
#include "session/contained_box.h"

namespace belljar::session {

// Processor time of the commands of one start that had a container of their own.
struct SpentTime {
  std::atomic<std::int64_t> ended_us{0};  // of those that ended, as wait4(2) has it
  std::atomic<std::int64_t> told_us{0};

  // Never less than before: a container's own count is more than what its command leaves when it ends.
  std::chrono::microseconds tell(std::chrono::microseconds now) noexcept {
    std::int64_t told = told_us.load();
    while (told < now.count() && !told_us.compare_exchange_weak(told, now.count())) {
    }
    return std::max(now, std::chrono::microseconds(told));
  }
};

struct ContainedRequest {
  Command command;
  std::string cwd;                                   // inside, absolute
  std::optional<std::chrono::milliseconds> timeout;  // in force already
  std::string stdin_bytes;
  bool stdin_pipe = false;
  std::optional<TerminalSize> terminal;
  CancelToken cancel;
  OutputCallback on_stdout, on_stderr;
  std::uint64_t output_bytes = 0;
  Limits limits;
  std::shared_ptr<const runtime::Origins> origins;  // for violations; may be null
  bool last = false;                                // the container is this command's own, and goes with it
  std::shared_ptr<SpentTime> spent;                 // where its time goes when it ends; may be null
  std::vector<std::string> allowed_domains;         // open while it runs, beside the policy's
};

class ContainedRun {
 public:
  using Box = std::shared_ptr<ContainedBox>;

  // Sends the command. Errors: kUnavailable, the container is gone; kResourceExhausted.
  static Result<std::unique_ptr<ContainedRun>> start(Box box, ContainedRequest request);
  ~ContainedRun();
  ContainedRun(const ContainedRun&) = delete;
  ContainedRun& operator=(const ContainedRun&) = delete;

  // Blocks until it is known whether the command was started; its pid inside, or 0.
  int await_start();
  // Blocks until the end. What a callback threw comes out of here, after the command's end.
  ExecResult finish();
  // What finish() gave, and nobody will read.
  void give_back(ExecResult& unread) { box_->give_back(unread); }

  // From any thread.
  void cancel() noexcept;
  void detach();
  Result<void> write(std::string_view bytes, std::chrono::milliseconds patience);
  Result<void> close_input();
  Result<void> resize(unsigned short rows, unsigned short columns);
  Result<void> signal(int number);

 private:
  using Clock = std::chrono::steady_clock;
  using Arrived = backend::container::Arrived;

  ContainedRun(Box box, ContainedRequest request);
  Result<void> send(char type, std::string_view payload);
  Result<void> send(char type, std::uint32_t number);
  Result<void> send_request();
  enum class News { kNone, kRecords, kCancel };
  News wait_until(std::optional<Clock::time_point> deadline, Clock::time_point now) const;
  void look();
  void handle(const Arrived& arrived);
  void output(command::Capture& capture, const OutputCallback& callback, const std::string& bytes);
  void turn();
  void feed();
  void check_deadlines(Clock::time_point now);
  void hold_timeout();
  std::optional<Clock::time_point> next_deadline() const;
  void stop(Reason reason, std::string message, std::chrono::milliseconds grace);
  void end_box();
  std::string timed_out() const { return timeout_message(*request_.timeout); }
  ExecResult result();
  bool ended_in_time() const;
  void set_end(ExecResult& result);
  void set_limits(ExecResult& result) const;
  void close_stream();

  Box box_;
  std::unique_ptr<LiveOutlet::Opened> opened_;
  std::shared_ptr<backend::container::Channel> channel_;
  ContainedRequest request_;
  std::uint32_t id_ = 0;
  std::shared_ptr<backend::container::Inbox> inbox_;
  Wake own_cancel_;
  std::atomic<bool> detached_{false};

  // the waiter's
  command::Capture out_, err_;
  std::deque<Arrived> waiting_;
  std::size_t fed_ = 0;
  bool closed_ = false, gone_ = false;
  std::uint64_t taken_ = 0;  // output that was taken and not yet told
  Clock::time_point sent_;
  std::optional<Clock::time_point> started_, exited_;
  int pid_ = 0;
  std::optional<Error> failed_;
  backend::container::Ended ended_;
  std::optional<Reason> cause_;
  bool ended_before_start_ = false;
  std::string message_;
  std::optional<Clock::time_point> hopeless_;
  std::exception_ptr thrown_;

  std::mutex input_mutex_;
  std::condition_variable input_moved_;
  std::size_t under_way_ = 0;               // of stdin; guarded by input_mutex_
  bool input_open_ = false, over_ = false;  // guarded by input_mutex_
  std::optional<Clock::time_point> due_;    // the timeout's end, once the command runs; guarded by input_mutex_
  std::atomic<bool> stopping_{false}, overdue_{false};
  std::thread clock_;
};

}  // namespace belljar::session
