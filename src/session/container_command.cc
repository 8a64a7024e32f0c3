// One command in a container: records to and from the container's pid 1 over one channel
// (backend/container/records.h lists them).
//
// Output and input have windows, since all commands of a container share the channel. Without them one command
// whose output nobody takes would fill the channel and stop the others. What was taken of the output is told in
// steps of a quarter of the window, which keeps the number of records small. Input counts as written when pid 1
// says that it was taken, not when it was sent.
//
// The timeout is kept three times. The waiter has it; a thread of its own has it where callbacks are given,
// because a callback that hangs keeps the waiter from looking (hold_timeout); and pid 1 measures the time
// between start and end. The last one is right: a command that ended in time is no timeout, even if its records
// waited here (ended_in_time).
//
// The end is pid 1's work: it gets the grace and sends TERM and KILL to the tree itself. When that does not
// happen in time, or the channel is gone, the engine ends the container, and with it everything inside.
#include "session/container_command.h"

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
#include "command/ending.h"
#include "command/running_command.h"
#include "runtime/run.h"
#include "runtime/violations.h"

namespace belljar::session {
namespace {

using namespace backend::container;
using namespace std::chrono_literals;
using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

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

ContainerCommand::ContainerCommand(ContainerPtr container, command::Request request, ContainerCommandOptions options)
    : RunningCommand(std::move(request), kHopeless),
      container_(std::move(container)),
      channel_(container_->channel()),
      options_(std::move(options)) {}

ContainerCommand::~ContainerCommand() {
  close_waits();
  if (clock_.joinable()) clock_.join();
  if (channel_ != nullptr && id_ != 0) channel_->drop_command(id_);
  if (options_.last) (void)container_->stop();
}

Result<std::shared_ptr<ContainerCommand>> ContainerCommand::start(ContainerPtr container, command::Request request,
                                                                  ContainerCommandOptions options) {
  std::shared_ptr<ContainerCommand> run(new ContainerCommand(std::move(container), std::move(request), std::move(options)));
  if (!run->valid())
    return Error(Code::kResourceExhausted, "cannot start the command").sys(errno, "eventfd").next("run fewer at once");
  run->opened_ = BELLJAR_TRY(run->container_->egress().open_hosts(run->request_.allowed_domains));
  std::tie(run->id_, run->inbox_) = BELLJAR_TRY(run->channel_->add_command());
  run->ending_.clock().begin(Steady::now());
  BELLJAR_CHECK(run->send_request());
  if (!run->request_.timeout || (!run->request_.on_stdout && !run->request_.on_stderr)) return run;
  try {
    run->clock_ = start_thread([it = run.get()] { it->hold_timeout(); });
  } catch (const std::system_error& failed) {
    return Error(Code::kResourceExhausted, "cannot watch the command's timeout").sys(failed.code().value(), "pthread_create");
  }
  return run;
}

// No write waits for the command any more, nor its clock.
void ContainerCommand::close_waits() {
  const std::lock_guard lock(input_mutex_);
  over_ = true;
  input_moved_.notify_all();
}

Result<void> ContainerCommand::send(char type, std::string_view payload) { return channel_->send(make_record(type, id_, payload)); }
Result<void> ContainerCommand::send(char type, std::uint32_t number) { return channel_->send(make_record(type, id_, number)); }

Result<void> ContainerCommand::send_request() {
  std::map<std::string, std::string> variables = by_name(container_->environment());
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

int ContainerCommand::await_start() {
  for (;;) {
    arrive();
    for (const ReceivedRecord& arrived : waiting_) {
      if (arrived.type == 's') return static_cast<int>(number_in(arrived.payload));
      if (arrived.type == 'f') return 0;
    }
    if (gone_) return 0;
    const auto deadline = ending_.next();
    if (deadline && Steady::now() >= *deadline) return 0;
    wait(deadline);
    if (wants_end()) return 0;
  }
}

void ContainerCommand::wait(std::optional<Time> deadline) {
  const auto [rung, token] = control_fds();
  std::array<pollfd, 3> set = {{{inbox_->fd(), POLLIN, 0}, {rung, POLLIN, 0}, {token, POLLIN, 0}}};
  const timespec wait = command::until(deadline);
  (void)::ppoll(set.data(), set.size(), deadline ? &wait : nullptr, nullptr);
}

void ContainerCommand::arrive() {
  for (ReceivedRecord& arrived : inbox_->take()) waiting_.push_back(std::move(arrived));
  // What came before the line broke is in the queue by now.
  if (waiting_.empty()) gone_ = inbox_->closed();
}

void ContainerCommand::look() {
  arrive();
  while (!waiting_.empty() && !over()) {
    const ReceivedRecord arrived = std::move(waiting_.front());
    waiting_.pop_front();
    handle(arrived);
  }
  if (taken_ >= kOutputWindow / 4) {
    (void)send('W', static_cast<std::uint32_t>(taken_));
    taken_ = 0;
  }
  feed();
}

void ContainerCommand::handle(const ReceivedRecord& arrived) {
  switch (arrived.type) {
    case 's':
      started_ = true;
      ending_.clock().begin(arrived.at);
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
      taken_ += arrived.payload.size();
      take(command::Stream::kOut, arrived.payload);
      break;
    case 'e':
      taken_ += arrived.payload.size();
      take(command::Stream::kErr, arrived.payload);
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
      if (auto ended = parse_exit_record(arrived.payload)) ended_ = *ended;
      exited_ = arrived.at;
      break;
    default:
      break;  // of a later version: `h` told that we understand each other
  }
}

void ContainerCommand::close_stream() {
  const std::lock_guard lock(input_mutex_);
  input_open_ = false;
  under_way_ = 0;
  fed_ = request_.stdin_bytes.size();
  input_moved_.notify_all();
}

// stdin of an exec, as far as its window goes.
void ContainerCommand::feed() {
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

// Of the whole tree, in milliseconds, for pid 1, which does the rest.
std::uint32_t ContainerCommand::grace() const {
  return static_cast<std::uint32_t>(std::max<milliseconds>(request_.limits.kill_grace, 0ms).count());
}

// The clock's thread: a caller that takes its time in a callback gives the command none.
void ContainerCommand::hold_timeout() {
  {
    std::unique_lock lock(input_mutex_);
    input_moved_.wait(lock, [&] { return over_ || due_; });
    if (over_ || input_moved_.wait_until(lock, *due_ + kStuck, [&] { return over_; })) return;
  }
  if (stopping_.load() || detached()) return;
  overdue_.store(true);
  (void)send('E', grace());
}

void ContainerCommand::advance_end(command::EndAction act) {
  if (act == command::EndAction::kGiveUp) return end_container();
  stopping_.store(true);
  ended_before_start_ = !started_;
  if (!send('E', act == command::EndAction::kTerm ? grace() : 0)) end_container();
}

// Its pid 1 did not end the command: the engine does, with everything else in there.
void ContainerCommand::end_container() {
  (void)container_->stop();
  gone_ = true;
}

// --- what came of it

Result<ExecResult> ContainerCommand::result() {
  close_waits();
  if (options_.spent != nullptr) options_.spent->ended_us += static_cast<std::int64_t>(ended_.user_us + ended_.system_us);
  if (options_.last) (void)container_->stop();  // nothing goes through after what is told
  ExecResult result;
  if (failed_) {
    result = runtime::failed_start(*failed_);
    container_->take_seen(result);
  } else {
    if (overdue_.load())
      ending_.stop({Reason::kTimeout, timeout_message(*request_.timeout)}, command::EndMode::kInside, Steady::now());
    if (ending_.reason() == Reason::kTimeout && ended_in_time()) ending_.forgive();
    set_end(result);
    streams_.finish(result);
    container_->take_seen(result);
    Policy policy;  // nothing but limits is asked of it
    policy.limits = request_.limits;
    runtime::add_limit_violations(result, policy, options_.origins.get(), request_.command.argv[0], request_.timeout);
  }
  opened_.reset();
  return result;
}

// What ended in time may have waited here past it: pid 1 has measured it. Not who was held before its execve(2) until its time was
// over, counted from when it was sent: our signal ended it soon after.
bool ContainerCommand::ended_in_time() const {
  if (!exited_ || (ended_before_start_ && WIFSIGNALED(ended_.status))) return false;
  return std::chrono::microseconds(ended_.wall_us) < *request_.timeout;
}

void ContainerCommand::set_end(ExecResult& result) {
  if (!exited_) {
    const std::string because = channel_->ended_because();
    ending_.tell_lost(result, command::ended_with_sandbox().message + (because.empty() ? "" : ": " + because));
    result.duration = std::chrono::duration_cast<std::chrono::microseconds>(Steady::now() - ending_.clock().begun());
    return;
  }
  // pid 1 measured it: what arrives together says nothing of the time between.
  result.duration = std::chrono::microseconds(ended_.wall_us);
  ending_.tell_exit(result, ended_.status);
  result.usage.cpu_user = std::chrono::microseconds(ended_.user_us);
  result.usage.cpu_system = std::chrono::microseconds(ended_.system_us);
  if (ended_.peak_bytes > 0) result.usage.peak_memory = Bytes{ended_.peak_bytes};
  set_limits(result);
}

// The counters are the container's: of commands that run at the same time, each is told.
void ContainerCommand::set_limits(ExecResult& result) const {
  const Limits& limits = request_.limits;
  if (ended_.out_of_pids && limits.pids) result.limits_hit.emplace_back("pids");
  if (!ended_.out_of_memory || !limits.memory) return;
  result.limits_hit.emplace_back("memory");
  if (result.signal != SIGKILL) return;
  ending_.tell_limit(result, Reason::kMemory,
                     format("the kernel ended the command because the sandbox needed more than its {} of memory (limits.memory)",
                            to_string(*limits.memory)));
}

// --- from other threads

void ContainerCommand::detach() noexcept {
  RunningCommand::detach();
  (void)send('H', std::string_view());
}

Result<void> ContainerCommand::write(std::string_view bytes, milliseconds patience) {
  if (!request_.stdin_pipe && !request_.terminal) return command::no_input("it was spawned without a pipe for it");
  const Time deadline = Steady::now() + bounded(patience);
  while (!bytes.empty()) {
    std::size_t size = 0;
    {
      std::unique_lock lock(input_mutex_);
      const auto ready = [&] { return over_ || !input_open_ || under_way_ < kInputWindow; };
      if (!input_moved_.wait_until(lock, deadline, ready)) return command::not_read(patience);
      if (over_) return command::no_input("the command has ended");
      if (!input_open_) return command::no_input("the pipe is closed, or nobody reads it any more");
      size = std::min({kInputWindow - under_way_, kInputPiece, bytes.size()});
      under_way_ += size;
    }
    BELLJAR_CHECK(send('D', bytes.substr(0, size)));
    bytes.remove_prefix(size);
  }
  // As a pipe's write: what was taken by the pipe is written. What still is under way is not, when nobody reads it.
  std::unique_lock lock(input_mutex_);
  if (!input_moved_.wait_until(lock, deadline, [&] { return over_ || !input_open_ || under_way_ == 0; }))
    return command::not_read(patience);
  if (!input_open_) return command::no_input("nobody reads it any more");
  return {};
}

Result<void> ContainerCommand::close_input() {
  if (request_.terminal) return write("\x04", 5s);
  {
    const std::lock_guard lock(input_mutex_);
    input_open_ = false;
  }
  return send('C', std::string_view());
}

Result<void> ContainerCommand::resize(unsigned short rows, unsigned short columns) {
  if (!request_.terminal) return command::no_terminal();
  return send('T', static_cast<std::uint32_t>(rows) << 16 | columns);
}

Result<void> ContainerCommand::signal(int number) { return send('S', static_cast<std::uint32_t>(number)); }

}  // namespace belljar::session
