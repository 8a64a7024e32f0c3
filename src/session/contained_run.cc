#include "session/contained_run.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <string>
#include <system_error>
#include <utility>

#include "base/environment.h"
#include "base/format.h"
#include "base/patience.h"
#include "base/thread.h"
#include "runtime/run.h"
#include "runtime/supervise.h"
#include "runtime/violations.h"
#include "session/ended.h"

namespace belljar::session {
namespace {

using namespace backend::container;
using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr std::size_t kInputPiece = 32U << 10;
constexpr milliseconds kStuck = 500ms;   // after the timeout: then the waiter hangs in a callback
constexpr milliseconds kHopeless = 10s;  // after the last signal: then the container itself is ended

Error not_run(const std::string& program, int exit_code, std::string reason, std::string next) {
  return Error(exit_code == 127 ? Code::kNotFound : Code::kPermissionDenied, format("cannot run {}", quoted(program)))
      .reason(std::move(reason))
      .next(std::move(next))
      .exit_code(exit_code);
}

// As runtime/start_failure.h, of a file system that is not ours to look into.
Error explain(char step, int errnum, const std::string& program, const std::string& cwd) {
  if (step == 'c')
    return Error(Code::kFailedPrecondition, format("cannot enter the directory {}", quoted(cwd)))
        .sys(errnum, "chdir")
        .next("choose a directory that the command may enter");
  if (step == 'l')
    return Error(Code::kFailedPrecondition, format("cannot start {}", quoted(program)))
        .reason("the policy's system call filter could not be installed")
        .sys(errnum, "seccomp")
        .next("start the sandbox again");
  if (step != 'e')
    return Error(Code::kResourceExhausted, format("cannot start {}", quoted(program)))
        .sys(errnum, "vfork")
        .next(errnum == EAGAIN ? "raise the pids limit (--pids), or end other processes" : "run fewer commands at once");
  switch (errnum) {
    case ENOENT:
    case ENOTDIR:
      return not_run(program, 127, "there is no such program in the image, or not the loader that it asks for",
                     "check the name, or use an image that has it");
    case E2BIG:
      return not_run(program, 126, "its arguments and environment are larger than the system takes",
                     "pass the data through a file or stdin");
    case ENOEXEC:
      return not_run(program, 126, "it is neither a program for this machine nor a script with a `#!` line", "use the right image");
    default:
      return not_run(program, 126, std::strerror(errnum), "see execve(2)");
  }
}

}  // namespace

ContainedRun::ContainedRun(Box box, ContainedRequest request)
    : box_(std::move(box)),
      channel_(box_->channel()),
      request_(std::move(request)),
      out_(request_.output_bytes),
      err_(request_.output_bytes) {}

ContainedRun::~ContainedRun() {
  {
    const std::lock_guard lock(input_mutex_);
    over_ = true;
    input_moved_.notify_all();
  }
  if (clock_.joinable()) clock_.join();
  if (channel_ != nullptr && id_ != 0) channel_->drop_command(id_);
  if (request_.last) (void)box_->stop();
}

Result<std::unique_ptr<ContainedRun>> ContainedRun::start(Box box, ContainedRequest request) {
  std::unique_ptr<ContainedRun> run(new ContainedRun(std::move(box), std::move(request)));
  if (!run->own_cancel_.valid())
    return Error(Code::kResourceExhausted, "cannot start the command").sys(errno, "eventfd").next("run fewer at once");
  run->opened_ = BELLJAR_TRY(run->box_->outlet().open_hosts(run->request_.allowed_domains));
  std::tie(run->id_, run->inbox_) = BELLJAR_TRY(run->channel_->add_command());
  run->sent_ = Clock::now();
  BELLJAR_CHECK(run->send_request());
  if (!run->request_.timeout || (!run->request_.on_stdout && !run->request_.on_stderr)) return run;
  try {
    run->clock_ = start_thread([it = run.get()] { it->hold_timeout(); });
  } catch (const std::system_error& failed) {
    return Error(Code::kResourceExhausted, "cannot watch the command's timeout").sys(failed.code().value(), "pthread_create");
  }
  return run;
}

Result<void> ContainedRun::send(char type, std::string_view payload) { return channel_->send(make_record(type, id_, payload)); }
Result<void> ContainedRun::send(char type, std::uint32_t number) { return channel_->send(make_record(type, id_, number)); }

Result<void> ContainedRun::send_request() {
  std::map<std::string, std::string> variables = by_name(box_->environment());
  for (const auto& [name, text] : request_.command.env) variables[name] = text;
  const std::string whole = make_request(request_.cwd, request_.command.argv, variables);
  std::string records;
  for (std::size_t at = 0; at < whole.size(); at += kLargestRecord)
    records += make_record('R', id_, std::string_view(whole).substr(at, kLargestRecord));
  const TerminalSize size = request_.terminal.value_or(TerminalSize{});
  const bool input = request_.stdin_pipe || !request_.stdin_bytes.empty();
  const unsigned flags = (input ? 1U : 0U) | (request_.terminal ? 2U : 0U);
  std::string go(1, static_cast<char>(flags));
  for (const unsigned short side : {size.rows, size.columns}) {
    go += static_cast<char>(side >> 8);
    go += static_cast<char>(side & 0xFF);
  }
  records += make_record('G', id_, go);
  input_open_ = input || request_.terminal;
  BELLJAR_CHECK(channel_->send(records));
  feed();
  return {};
}

// --- the waiter

// What is due or cancelled before it is told of goes to finish(), which ends it.
int ContainedRun::await_start() {
  for (;;) {
    look();
    for (const Arrived& arrived : waiting_) {
      if (arrived.type == 's') return static_cast<int>(number_in(arrived.payload));
      if (arrived.type == 'f') return 0;
    }
    if (gone_) return 0;
    const Clock::time_point now = Clock::now();
    const auto deadline = next_deadline();
    if (deadline && now >= *deadline) return 0;
    if (wait_until(deadline, now) == News::kCancel) return 0;
  }
}

ContainedRun::News ContainedRun::wait_until(std::optional<Clock::time_point> deadline, Clock::time_point now) const {
  std::array<pollfd, 3> set = {{{inbox_->fd(), POLLIN, 0},
                                {cause_ ? -1 : own_cancel_.get(), POLLIN, 0},
                                {cause_ || detached_.load() ? -1 : request_.cancel.fd(), POLLIN, 0}}};
  timespec wait{};
  if (deadline && *deadline > now) {
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(*deadline - now).count();
    wait = {static_cast<time_t>(left / 1'000'000'000), static_cast<long>(left % 1'000'000'000)};
  }
  if (::ppoll(set.data(), set.size(), deadline ? &wait : nullptr, nullptr) <= 0) return News::kNone;
  return set[1].revents != 0 || set[2].revents != 0 ? News::kCancel : News::kRecords;
}

ExecResult ContainedRun::finish() {
  while (!exited_ && !failed_ && !gone_) turn();
  {
    const std::lock_guard lock(input_mutex_);
    over_ = true;
    input_moved_.notify_all();
  }
  if (request_.spent != nullptr) request_.spent->ended_us += static_cast<std::int64_t>(ended_.user_us + ended_.system_us);
  if (request_.last) (void)box_->stop();  // nothing goes through after what is told
  ExecResult end = result();
  opened_.reset();
  if (thrown_) {
    give_back(end);
    std::rethrow_exception(thrown_);
  }
  return end;
}

void ContainedRun::look() {
  for (Arrived& arrived : inbox_->take()) waiting_.push_back(std::move(arrived));
  // What came before the line broke is in the queue by now.
  if (waiting_.empty()) gone_ = inbox_->closed();
}

void ContainedRun::turn() {
  look();
  while (!waiting_.empty() && !exited_ && !failed_) {
    const Arrived arrived = std::move(waiting_.front());
    waiting_.pop_front();
    handle(arrived);
  }
  if (taken_ >= kOutputWindow / 4) {
    (void)send('W', static_cast<std::uint32_t>(taken_));
    taken_ = 0;
  }
  feed();
  const Clock::time_point now = Clock::now();
  check_deadlines(now);
  if (exited_ || failed_ || gone_) return;
  if (wait_until(next_deadline(), now) == News::kCancel)
    stop(Reason::kCancelled, "cancelled by the caller", request_.limits.kill_grace);
}

void ContainedRun::handle(const Arrived& arrived) {
  switch (arrived.type) {
    case 's':
      started_ = arrived.at;
      pid_ = static_cast<int>(number_in(arrived.payload));
      if (request_.timeout) {
        const std::lock_guard lock(input_mutex_);
        due_ = arrived.at + *request_.timeout;
        input_moved_.notify_all();
      }
      break;
    case 'f':
      failed_ = explain(arrived.payload.empty() ? 'r' : arrived.payload[0], static_cast<int>(number_in(arrived.payload, 1)),
                        request_.command.argv[0], request_.cwd);
      break;
    case 'o':
      output(out_, request_.on_stdout, arrived.payload);
      break;
    case 'e':
      output(err_, request_.on_stderr, arrived.payload);
      break;
    case 'w': {
      const std::lock_guard lock(input_mutex_);
      under_way_ -= std::min<std::size_t>(under_way_, number_in(arrived.payload));
      input_moved_.notify_all();
      break;
    }
    case 'b':
      close_stream();
      break;
    case 'x':
      if (auto ended = parse_ended(arrived.payload)) ended_ = *ended;
      exited_ = arrived.at;
      break;
    default:
      break;  // of a later version: `h` told that we understand each other
  }
}

void ContainedRun::close_stream() {
  const std::lock_guard lock(input_mutex_);
  input_open_ = false;
  under_way_ = 0;
  fed_ = request_.stdin_bytes.size();
  input_moved_.notify_all();
}

void ContainedRun::output(command::Capture& capture, const OutputCallback& callback, const std::string& bytes) {
  capture.append(bytes);
  taken_ += bytes.size();
  if (callback && !thrown_ && !detached_.load()) {
    try {
      callback(bytes);
    } catch (...) {
      thrown_ = std::current_exception();
      stop(Reason::kCancelled, "a callback of the caller failed", 0ms);
    }
  }
  if (capture.over() && request_.limits.output_action == OutputAction::kKill)
    stop(Reason::kOutput, format("the output exceeded the limit of {} bytes", request_.output_bytes), 0ms);
}

// stdin of an exec, as far as its window goes.
void ContainedRun::feed() {
  const std::string& bytes = request_.stdin_bytes;
  if (bytes.empty() || closed_) return;
  for (;;) {
    std::size_t room = 0;
    {
      const std::lock_guard lock(input_mutex_);
      if (!input_open_) return;
      room = kInputWindow - std::min(under_way_, kInputWindow);
      const std::size_t size = std::min({room, kInputPiece, bytes.size() - fed_});
      under_way_ += size;
      room = size;
    }
    if (room == 0) break;
    if (!send('D', std::string_view(bytes).substr(fed_, room))) return;
    fed_ += room;
  }
  if (fed_ < bytes.size()) return;
  closed_ = true;
  (void)send('C', std::string_view());
}

// --- ending it

std::optional<ContainedRun::Clock::time_point> ContainedRun::next_deadline() const {
  if (hopeless_) return hopeless_;
  if (cause_ || !request_.timeout || detached_.load()) return {};
  return started_.value_or(sent_) + *request_.timeout;
}

void ContainedRun::check_deadlines(Clock::time_point now) {
  const auto deadline = next_deadline();
  if (!deadline || now < *deadline || exited_ || failed_) return;
  if (hopeless_) return end_box();
  stop(Reason::kTimeout, timed_out(), request_.limits.kill_grace);
}

// The clock's thread: a caller that takes its time in a callback gives the command none.
void ContainedRun::hold_timeout() {
  {
    std::unique_lock lock(input_mutex_);
    input_moved_.wait(lock, [&] { return over_ || due_; });
    if (over_ || input_moved_.wait_until(lock, *due_ + kStuck, [&] { return over_; })) return;
  }
  if (stopping_.load() || detached_.load()) return;
  overdue_.store(true);
  (void)send('E', static_cast<std::uint32_t>(std::max<milliseconds>(request_.limits.kill_grace, 0ms).count()));
}

void ContainedRun::stop(Reason reason, std::string message, milliseconds grace) {
  if (cause_) return;
  stopping_.store(true);
  ended_before_start_ = !started_;
  cause_ = reason;
  message_ = std::move(message);
  if (exited_ || failed_ || gone_) return;
  hopeless_ = Clock::now() + grace + kHopeless;
  if (!send('E', static_cast<std::uint32_t>(std::max<milliseconds>(grace, 0ms).count()))) end_box();
}

// Its pid 1 did not end the command: the engine does, with everything else in there.
void ContainedRun::end_box() {
  hopeless_.reset();
  (void)box_->stop();
  gone_ = true;
}

// --- what came of it

ExecResult ContainedRun::result() {
  if (failed_) {
    ExecResult failed = runtime::failed_start(*failed_);
    box_->take_seen(failed);
    return failed;
  }
  if (overdue_.load() && !cause_) {
    cause_ = Reason::kTimeout;
    message_ = timed_out();
  }
  if (cause_ == Reason::kTimeout && ended_in_time()) cause_.reset();
  ExecResult result;
  set_end(result);
  result.out = std::move(out_).finish();
  result.err = std::move(err_).finish();
  if (result.out.omitted > 0 || result.err.omitted > 0) result.limits_hit.emplace_back("output");
  box_->take_seen(result);
  Policy policy;  // nothing but limits is asked of it
  policy.limits = request_.limits;
  runtime::add_limit_violations(result, policy, request_.origins.get(), request_.command.argv[0], request_.timeout);
  return result;
}

// What ended in time may have waited here past it: pid 1 has measured it. Not who was held before its execve(2) until its time was
// over, counted from when it was sent: our signal ended it soon after.
bool ContainedRun::ended_in_time() const {
  if (!exited_ || (ended_before_start_ && WIFSIGNALED(ended_.status))) return false;
  return std::chrono::microseconds(ended_.wall_us) < *request_.timeout;
}

void ContainedRun::set_end(ExecResult& result) {
  const Clock::time_point begun = started_.value_or(sent_);
  result.duration = std::chrono::duration_cast<std::chrono::microseconds>(exited_.value_or(Clock::now()) - begun);
  if (!exited_) {
    const std::string because = channel_->ended_because();
    result.exit_code = cause_ == Reason::kTimeout ? 124 : 128 + SIGKILL;
    result.signal = SIGKILL;
    result.reason = cause_.value_or(Reason::kCancelled);
    result.message =
        cause_ ? message_ : format("the sandbox ended before the command did{}{}", because.empty() ? "" : ": ", because);
    return;
  }
  // pid 1 measured it: what arrives together says nothing of the time between.
  result.duration = std::chrono::microseconds(ended_.wall_us);
  runtime::set_exit(result, ended_.status);
  result.usage.cpu_user = std::chrono::microseconds(ended_.user_us);
  result.usage.cpu_system = std::chrono::microseconds(ended_.system_us);
  if (ended_.peak_bytes > 0) result.usage.peak_memory = Bytes{ended_.peak_bytes};
  set_limits(result);
  if (!cause_) return;
  result.reason = *cause_;
  result.message = message_;
  if (*cause_ == Reason::kTimeout) result.exit_code = 124;
  else if (result.exit_code < 128) result.exit_code = 128 + (*cause_ == Reason::kCancelled ? SIGTERM : SIGKILL);
}

// The counters are the container's: of commands that run at the same time, each is told.
void ContainedRun::set_limits(ExecResult& result) const {
  const Limits& limits = request_.limits;
  if (ended_.out_of_pids && limits.pids) result.limits_hit.emplace_back("pids");
  if (!ended_.out_of_memory || !limits.memory) return;
  result.limits_hit.emplace_back("memory");
  if (result.signal != SIGKILL || cause_) return;
  result.reason = Reason::kMemory;
  result.message = format("the kernel ended the command because the sandbox needed more than its {} of memory (limits.memory)",
                          to_string(*limits.memory));
}

// --- from other threads

void ContainedRun::cancel() noexcept { own_cancel_.ring(); }

void ContainedRun::detach() {
  detached_.store(true);
  (void)send('H', std::string_view());
}

Result<void> ContainedRun::write(std::string_view bytes, milliseconds patience) {
  if (!request_.stdin_pipe && !request_.terminal) return no_input("it was spawned without a pipe for it");
  const Clock::time_point deadline = Clock::now() + bounded(patience);
  while (!bytes.empty()) {
    std::size_t size = 0;
    {
      std::unique_lock lock(input_mutex_);
      const auto ready = [&] { return over_ || !input_open_ || under_way_ < kInputWindow; };
      if (!input_moved_.wait_until(lock, deadline, ready))
        return Error(Code::kDeadlineExceeded, "cannot write to the command's stdin")
            .reason(format("it did not read for {}", to_string(patience)));
      if (over_) return no_input("the command has ended");
      if (!input_open_) return no_input("the pipe is closed, or nobody reads it any more");
      size = std::min({kInputWindow - under_way_, kInputPiece, bytes.size()});
      under_way_ += size;
    }
    BELLJAR_CHECK(send('D', bytes.substr(0, size)));
    bytes.remove_prefix(size);
  }
  // As a pipe's write: what was taken by the pipe is written. What still is under way is not, when nobody reads it.
  std::unique_lock lock(input_mutex_);
  if (!input_moved_.wait_until(lock, deadline, [&] { return over_ || !input_open_ || under_way_ == 0; }))
    return Error(Code::kDeadlineExceeded, "cannot write to the command's stdin")
        .reason(format("it did not read for {}", to_string(patience)));
  if (!input_open_) return no_input("nobody reads it any more");
  return {};
}

Result<void> ContainedRun::close_input() {
  if (request_.terminal) return write("\x04", 5s);
  {
    const std::lock_guard lock(input_mutex_);
    input_open_ = false;
  }
  return send('C', std::string_view());
}

Result<void> ContainedRun::resize(unsigned short rows, unsigned short columns) {
  if (!request_.terminal)
    return Error(Code::kFailedPrecondition, "cannot resize the terminal").reason("the command was spawned without one");
  return send('T', static_cast<std::uint32_t>(rows) << 16 | columns);
}

Result<void> ContainedRun::signal(int number) { return send('S', static_cast<std::uint32_t>(number)); }

}  // namespace belljar::session
