#include "remote/e2b/run.h"

#include <signal.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <exception>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/encoding.h"
#include "base/format.h"
#include "base/patience.h"
#include "base/unique_fd.h"
#include "belljar/command.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "belljar/units.h"
#include "command/capture.h"
#include "http/client.h"
#include "remote/e2b/core.h"
#include "remote/e2b/envd.h"
#include "remote/e2b/events.h"
#include "remote/marked.h"
#include "runtime/json.h"
#include "runtime/run.h"
#include "runtime/supervise.h"

namespace belljar::remote::e2b {
namespace {

using Json = nlohmann::json;
using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr std::size_t kInputPiece = 256U << 10;
constexpr std::size_t kMostPage = 64U << 10;  // kept of a reply that is no stream
constexpr milliseconds kHopeless = 5s;        // after the last signal: its end is not waited for any more
constexpr milliseconds kEnding = 5s;          // for all that is asked of the service to end a command
constexpr milliseconds kHelperEnding = 1s;    // the same, of a helper, whose own end others wait for
constexpr milliseconds kBackstop = 30s;
constexpr milliseconds kLastWords = 500ms;      // for the rest of a stream whose command has ended
constexpr std::chrono::seconds kLastAnswer{2};  // for what was sent to the stdin of a command that has ended
constexpr char kNotStarted[] = "cannot start the command in the sandbox";

Error no_input(std::string reason) {
  return Error(Code::kFailedPrecondition, "cannot write to the command's stdin").reason(std::move(reason));
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

Result<void> check_command_text(const Command& command) {
  const auto wrong = [](std::string_view text) { return runtime::to_utf8(text).replaced > 0; };
  const bool bad = std::ranges::any_of(command.argv, wrong) ||
                   std::ranges::any_of(command.env, [&](const auto& entry) { return wrong(entry.first) || wrong(entry.second); });
  if (!bad) return {};
  return Error(Code::kUnimplemented, "cannot start a command whose words are no UTF-8")
      .reason("E2B takes commands as JSON")
      .next("pass the bytes through a file or stdin");
}

}  // namespace

Run::Run(std::shared_ptr<Core> core, RunRequest request)
    : core_(std::move(core)),
      request_(std::move(request)),
      past_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
      out_(request_.output_bytes),
      err_(request_.output_bytes) {}

Run::~Run() {
  done_.ring();
  if (feeder_.joinable()) feeder_.join();
}

Result<std::shared_ptr<Run>> Run::start(std::shared_ptr<Core> core, RunRequest request) {
  BELLJAR_CHECK(check_command_text(request.command));
  std::shared_ptr<Run> run(new Run(std::move(core), std::move(request)));
  if (!run->wishes_.valid() || !run->done_.valid() || !run->past_.valid())
    return Error(Code::kResourceExhausted, "cannot start the command").sys(errno, "eventfd or timerfd").next("run fewer at once");
  if (run->request_.marked) run->mark_ = run->core_->next_mark();
  const auto& timeout = run->request_.timeout;
  std::optional<milliseconds> lives;
  if (timeout && run->request_.backstop && *timeout < kForever / 2) lives = *timeout + run->request_.limits.kill_grace + kBackstop;
  run->sent_ = run->heard_ = Clock::now();
  run->stream_ = BELLJAR_TRY(run->core_->envd().start(run->start_message(), lives));
  if (run->request_.marked) run->core_->add(run);
  return run;
}

std::string Run::start_message() const {
  Json process = {{"cmd", request_.command.argv[0]}, {"cwd", request_.cwd}};
  process["args"] = std::vector<std::string>(request_.command.argv.begin() + 1, request_.command.argv.end());
  process["envs"] = request_.command.env;
  if (!mark_.empty()) process["envs"][kMark] = mark_;
  Json message = {{"process", std::move(process)}, {"stdin", request_.stdin_pipe || !request_.stdin_bytes.empty()}};
  if (request_.terminal) message["pty"] = {{"size", {{"cols", request_.terminal->columns}, {"rows", request_.terminal->rows}}}};
  return message.dump();
}

std::string Run::selector() const { return format(R"({{"pid":{}}})", pid_.load()); }

// --- the waiter

int Run::await_start() {
  while (!started_ && !over()) turn(true);
  return pid_.load();
}

Result<ExecResult> Run::finish() {
  while (!over()) turn(false);
  over_at_ = Clock::now();
  if (ended_ && kill_at_ && !core_->ending()) end_tree(SIGKILL);  // its leader went at once, others may not have
  done_.ring();
  const itimerspec soon{.it_interval = {}, .it_value = {.tv_sec = kLastAnswer.count(), .tv_nsec = 0}};
  ::timerfd_settime(past_.get(), 0, &soon, nullptr);
  if (feeder_.joinable()) feeder_.join();
  // The connection serves the next command when this reply has been read to its end.
  for (const auto until = Clock::now() + kLastWords; ended_ && Clock::now() < until;) {
    const auto came = stream_->wait(until, {});
    if (!came || *came != http::Stream::Came::kSomething) break;
    (void)stream_->take();
  }
  stream_.reset();
  if (thrown_) std::rethrow_exception(thrown_);
  if (refused_ && !not_run_) return *refused_;
  return result();
}

void Run::turn(bool until_started) {
  check_deadlines(Clock::now());
  if (over()) return;
  const std::array<int, 2> wake = {wishes_.get(), cause_ ? -1 : request_.cancel.fd()};
  const auto came = stream_->wait(next_deadline(), wake);
  if (!came) return lose(came.error().reason());
  if (*came == http::Stream::Came::kSomething) {
    take_bytes();
    heard_ = Clock::now();  // after the callbacks: what the caller's reader takes is no silence of the command
    if (hopeless_ && heard_ >= *hopeless_ + kLastWords) lose("its end was not told");  // it talks on, and is not to be ended
  } else if (*came == http::Stream::Came::kNothing) {
    check_silence(Clock::now());
  } else if (*came == http::Stream::Came::kEnd) {
    if (!begun_) take_head();
    if (over()) return;
    if (!is_stream_) {
      refused_ = core_->envd().refusal(stream_->head(), body_, kNotStarted);
      if (!refused_)
        lose("it answered with something else, of the type " + belljar::quoted(stream_->head().content_type.substr(0, 80)));
    } else {
      lose("the stream broke off");
    }
  }
  if (!until_started || *came == http::Stream::Came::kNothing) look_at_wishes();
}

void Run::take_head() {
  begun_ = true;
  const http::Reply head = stream_->head();
  is_stream_ = head.status == 200 && head.content_type.starts_with("application/connect+json");
}

void Run::take_bytes() {
  if (!begun_) take_head();
  const std::string bytes = stream_->take();
  if (!is_stream_) {
    body_ += bytes.substr(0, kMostPage - std::min(kMostPage, body_.size()));
    return;
  }
  const auto fed = frames_.feed(bytes, [&](bool last, std::string_view json) {
    if (last) {
      handle_last(json);
    } else if (const auto event = parse_event(json)) {
      handle(*event);
    } else {
      lose(event.error().reason());
    }
    return !gone_;
  });
  if (!fed && !over()) lose(fed.error().reason());
}

void Run::handle(const Event& event) {
  if (ended_) return;
  if (!started_ && (event.kind == EventKind::kStdout || event.kind == EventKind::kStderr || event.kind == EventKind::kEnd))
    return lose("it speaks of a command before its start");
  switch (event.kind) {
    case EventKind::kStart:
      if (started_) return;
      started_ = Clock::now();
      pid_ = static_cast<int>(event.pid);
      if (!request_.stdin_bytes.empty()) feeder_ = std::thread([this] { feed(); });
      if (cause_) end_tree(kill_at_ ? SIGTERM : SIGKILL);
      break;
    case EventKind::kStdout:
      output(out_, request_.on_stdout, event.bytes);
      break;
    case EventKind::kStderr:
      output(err_, request_.on_stderr, event.bytes);
      break;
    case EventKind::kEnd:
      ended_ = event;
      break;
    case EventKind::kOther:
      break;
  }
}

void Run::handle_last(std::string_view json) {
  if (ended_) return;
  const auto last = parse_last(json);
  if (!last) return lose(last.error().reason());
  if (!*last) return lose("the stream ended before the command did");
  const Complaint& complaint = **last;
  if (!started_) {
    refused_ = explain(complaint);
    return;
  }
  if (complaint.code == Code::kDeadlineExceeded && !cause_) {
    cause_ = Reason::kTimeout;
    message_ = request_.timeout ? timeout_message(*request_.timeout) : "the service ended the command at a deadline of its own";
  }
  lose(core_->envd().refused(complaint, "the command was lost").reason());
}

void Run::output(command::Capture& capture, const OutputCallback& callback, const std::string& bytes) {
  capture.append(bytes);
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

// Why the daemon did not start it, of a file system that is not ours to look into.
Error Run::explain(const Complaint& complaint) {
  Error said = core_->envd().refused(complaint, kNotStarted);
  if (complaint.code != Code::kInvalidArgument) return said;
  if (has(complaint.message, "cwd") && has(complaint.message, "does not exist"))
    return Error(Code::kNotFound, format("cannot use as working directory {}", belljar::quoted(request_.cwd)))
        .reason(said.reason());
  not_run_ = true;
  const bool missing = has(complaint.message, "not found") || has(complaint.message, "no such file");
  return Error(missing ? Code::kNotFound : Code::kPermissionDenied,
               format("cannot run {}", belljar::quoted(request_.command.argv[0])))
      .reason(said.reason())
      .next("check the name, or use a template that has it")
      .exit_code(missing ? 127 : 126);
}

// --- ending it

Run::Clock::time_point Run::next_deadline() const {
  auto next = heard_ + 3 * kKeepalive;  // a live stream says something that often
  if (!started_) next = std::min<Clock::time_point>(next, sent_ + core_->envd().patience());
  if (hopeless_) next = std::min(next, *hopeless_);
  if (kill_at_) next = std::min(next, *kill_at_);
  if (!cause_ && request_.timeout && *request_.timeout < kForever / 2)
    next = std::min<Clock::time_point>(next, started_.value_or(sent_) + *request_.timeout);
  return next;
}

void Run::check_deadlines(Clock::time_point now) {
  if (now < next_deadline()) return;
  if (kill_at_ && now >= *kill_at_) {
    kill_at_.reset();
    end_tree(SIGKILL);
    hopeless_ = Clock::now() + patience_of_end();
  } else if (!cause_ && request_.timeout && now >= started_.value_or(sent_) + *request_.timeout) {
    stop(Reason::kTimeout, timeout_message(*request_.timeout), request_.limits.kill_grace);
  }
}

// Only when nothing waits to be read.
void Run::check_silence(Clock::time_point now) {
  if (over()) return;
  if (hopeless_ && now >= *hopeless_) lose("its end was not told");
  else if (started_ && now >= heard_ + 3 * kKeepalive) lose("nothing was heard of it, not even that it lives");
  else if (!started_ && (now >= sent_ + core_->envd().patience() || now >= heard_ + 3 * kKeepalive)) lose("no answer in time");
}

void Run::look_at_wishes() {
  wishes_.take();
  std::string no_input;
  {
    const std::lock_guard lock(input_mutex_);
    no_input = input_lost_;
  }
  // To the command it would be an end of its input that nobody meant, or none at all.
  if (!no_input.empty()) lose("its stdin broke off: " + no_input);
  else if (detached_.load()) detached_seen_ = true;
  else if (core_->ending() && request_.marked) stop(Reason::kCancelled, "the sandbox ended before the command did", 0ms);
  else if (cancelled_.load() || request_.cancel.cancelled())
    stop(Reason::kCancelled, "cancelled by the caller", request_.limits.kill_grace);
}

void Run::stop(Reason reason, std::string message, milliseconds grace) {
  if (cause_) return;
  cause_ = reason;
  message_ = std::move(message);
  if (over()) return;
  const bool gently = grace > 0ms && !core_->ending();
  if (gently) kill_at_ = Clock::now() + grace;
  if (started_ && !core_->ending()) end_tree(gently ? SIGTERM : SIGKILL);
  hopeless_ = std::max(Clock::now(), kill_at_.value_or(Clock::time_point())) + patience_of_end();
}

// The daemon signals one process; a helper finds the others.
void Run::end_tree(int signal) {
  if (kill_failed_) return;  // it was waited for once
  const auto until = Clock::now() + (request_.marked ? kEnding : kHelperEnding);
  const bool done = !mark_.empty() && core_->kill_marked(mark_, signal, kEnding);
  if (pid_.load() == 0 || (done && signal != SIGKILL)) return;
  const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now());
  // Also when the helper did it: after a KILL through it the daemon ends the stream, whoever still holds the output.
  const auto sent = core_->envd().call(
      "process.Process/SendSignal",
      format(R"({{"process":{},"signal":"{}"}})", selector(), signal == SIGKILL ? "SIGNAL_SIGKILL" : "SIGNAL_SIGTERM"),
      "cannot signal the command", std::max(left, kHelperEnding), -1);
  kill_failed_ = signal == SIGKILL && !done && !sent;
}

milliseconds Run::patience_of_end() const noexcept { return request_.marked ? kHopeless : kHelperEnding; }

// What cannot be seen any more must not run on.
void Run::lose(std::string why) {
  if (over()) return;
  gone_ = true;
  lost_ = std::move(why);
  if (!core_->ending()) end_tree(SIGKILL);
  if (!started_ && !cause_)
    refused_ = Error(Code::kUnavailable, kNotStarted).reason(lost_).next("try again, or look whether the sandbox lives");
}

// --- what came of it

ExecResult Run::result() {
  if (refused_) return runtime::failed_start(*refused_);
  ExecResult result;
  set_end(result);
  result.out = std::move(out_).finish();
  result.err = std::move(err_).finish();
  if (result.out.omitted > 0 || result.err.omitted > 0) result.limits_hit.emplace_back("output");
  return result;
}

void Run::set_end(ExecResult& result) const {
  result.duration = std::chrono::duration_cast<std::chrono::microseconds>(over_at_ - started_.value_or(sent_));
  if (!ended_) {
    result.exit_code = cause_ == Reason::kTimeout ? 124 : 128 + SIGKILL;
    result.signal = SIGKILL;
    result.reason = cause_.value_or(Reason::kCancelled);
    result.message = cause_ ? message_ : "the command was lost and ended: " + lost_;
    return;
  }
  runtime::set_exit(result, ended_->signal != 0 ? ended_->signal : ended_->exit_code << 8);
  const bool with_sandbox = !cause_ && core_->ending() && request_.marked;
  if (!cause_ && !with_sandbox) return;
  result.reason = cause_.value_or(Reason::kCancelled);
  result.message = with_sandbox ? "the sandbox ended before the command did" : message_;
  if (result.reason == Reason::kTimeout) result.exit_code = 124;
  else if (result.exit_code < 128) result.exit_code = 128 + (result.reason == Reason::kCancelled ? SIGTERM : SIGKILL);
}

// --- from other threads

void Run::cancel() noexcept {
  cancelled_ = true;
  wishes_.ring();
}

void Run::detach() noexcept {
  detached_ = true;
  wishes_.ring();
}

// stdin of an exec: on a thread of its own, since a command may write a lot before it reads.
void Run::feed() {
  const std::string& bytes = request_.stdin_bytes;
  for (std::size_t at = 0; at < bytes.size(); at += kInputPiece) {
    if (!send_input(std::string_view(bytes).substr(at, kInputPiece), kForever, done_.get())) return;  // nobody reads it
  }
  (void)close_input();
}

void Run::lose_input(const std::string& why) {
  {
    const std::lock_guard lock(input_mutex_);
    if (input_lost_.empty()) input_lost_ = why.empty() ? "the service gave no reason" : why;
  }
  wishes_.ring();
}

Result<void> Run::send_input(std::string_view bytes, milliseconds patience, int cancel_fd) {
  const std::string message =
      format(R"({{"process":{},"input":{{"{}":"{}"}}}})", selector(), request_.terminal ? "pty" : "stdin", to_base64(bytes));
  auto sent = core_->envd().call("process.Process/SendInput", message, "cannot write to the command's stdin", patience, cancel_fd);
  if (sent) return {};
  if (sent.error().code() == Code::kCanceled) return no_input("the command has ended");
  if (sent.error().code() == Code::kDeadlineExceeded)
    return Error(Code::kDeadlineExceeded, "cannot write to the command's stdin")
        .reason(format("it did not read for {}", to_string(patience)));
  const Code code = sent.error().code();
  if (code == Code::kUnavailable || code == Code::kUnauthenticated || code == Code::kResourceExhausted) {
    lose_input(sent.error().reason());
    return sent.error();
  }
  return no_input("nobody reads it any more: " + sent.error().reason());
}

Result<void> Run::write(std::string_view bytes, milliseconds patience) {
  if (!request_.stdin_pipe && !request_.terminal) return no_input("it was spawned without a pipe for it");
  if (input_closed_.load()) return no_input("the pipe is closed");
  const auto deadline = Clock::now() + bounded(patience);
  while (!bytes.empty()) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    // Not ended at once with the command: what made it end may be these bytes, and their answer be on its way.
    BELLJAR_CHECK(send_input(bytes.substr(0, kInputPiece), std::max(left, 1ms), past_.get()));
    bytes.remove_prefix(std::min(kInputPiece, bytes.size()));
  }
  return {};
}

Result<void> Run::close_input() {
  if (request_.terminal) return write("\x04", 30s);
  if (input_closed_.exchange(true)) return {};
  const auto closed = core_->envd().call("process.Process/CloseStdin", format(R"({{"process":{}}})", selector()),
                                         "cannot close the command's stdin", 30s, done_.get());
  // The command may have ended because of it before the answer came.
  if (closed || closed.error().code() == Code::kCanceled || closed.error().code() == Code::kNotFound) return {};
  if (closed.error().code() != Code::kInternal) lose_input(closed.error().reason());  // kInternal: it was closed already
  return closed.error();
}

Result<void> Run::resize(unsigned short rows, unsigned short columns) {
  if (!request_.terminal)
    return Error(Code::kFailedPrecondition, "cannot resize the terminal").reason("the command was spawned without one");
  return core_->envd()
      .call("process.Process/Update",
            format(R"({{"process":{},"pty":{{"size":{{"cols":{},"rows":{}}}}}}})", selector(), columns, rows),
            "cannot resize the terminal")
      .map([](const std::string&) {});
}

Result<void> Run::signal(int number) {
  if (pid_.load() == 0)  // to kill(1) our own group
    return Error(Code::kFailedPrecondition, "cannot signal the command").reason("it was not started");
  const std::string pid = std::to_string(pid_.load());
  const auto helped =
      core_->help({"/bin/sh", "-c", R"(kill "-$1" -- "-$2" 2>/dev/null || kill "-$1" "$2")", "sh", std::to_string(number), pid});
  if (!helped) return helped.error();
  if (helped->exit_code == 0) return {};
  return Error(Code::kFailedPrecondition, "cannot signal the command").reason(escaped(helped->err.substr(0, 200)));
}

}  // namespace belljar::remote::e2b
