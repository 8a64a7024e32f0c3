// One command of E2B: a Connect stream that tells its events, and single calls that feed and signal it.
//
// The stream is the only source of output; the daemon keeps nothing for a second reader. So a stream that
// breaks, stalls or makes no sense ends the command (lose). Silence counts from the last byte, in units of the
// keepalive that the daemon was asked for, and only when nothing waits to be read: a slow callback of the
// caller is no silence of the command.
//
// The daemon's own signal reaches one process. A helper inside signals the whole tree by its mark, and after
// KILL the daemon is asked as well, because that also ends a stream that others hold open.
//
// stdin of an exec has a thread of its own. A command may write a lot before it reads, and a waiter that feeds
// would not read the stream meanwhile: both sides would wait for each other. Input is never sent twice
// (Envd::call).
//
// The daemon is told the timeout of an exec, too (Connect-Timeout-Ms), a while after ours, in case this machine
// dies. What may be detached has no such end.
#include "remote/e2b/e2b_command.h"

#include <signal.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <memory>
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
#include "command/ending.h"
#include "command/request.h"
#include "command/running_command.h"
#include "http/client.h"
#include "remote/e2b/e2b_instance.h"
#include "remote/e2b/envd.h"
#include "remote/e2b/events.h"
#include "remote/marked.h"
#include "remote/remote_command.h"
#include "runtime/json.h"

namespace belljar::remote::e2b {
namespace {

using Json = nlohmann::json;
using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr std::size_t kInputPiece = 256U << 10;
constexpr std::size_t kMostPage = 64U << 10;  // kept of a reply that is no stream
constexpr milliseconds kBackstop = 30s;
constexpr milliseconds kLastWords = 500ms;      // for the rest of a stream whose command has ended
constexpr std::chrono::seconds kLastAnswer{2};  // for what was sent to the stdin of a command that has ended
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

E2bCommand::E2bCommand(std::shared_ptr<E2bInstance> instance, command::Request request, milliseconds patience)
    : RemoteCommand(std::move(request), patience),
      instance_(std::move(instance)),
      past_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {}

E2bCommand::~E2bCommand() {
  done_.ring();
  if (feeder_.joinable()) feeder_.join();
}

Result<std::shared_ptr<E2bCommand>> E2bCommand::start(std::shared_ptr<E2bInstance> instance, command::Request request) {
  BELLJAR_CHECK(check_command_text(request.command));
  const milliseconds patience = request.purpose == command::Purpose::kHelper ? kHelperEnding : kHopeless;
  std::shared_ptr<E2bCommand> run(new E2bCommand(std::move(instance), std::move(request), patience));
  if (!run->valid() || !run->done_.valid() || !run->past_.valid())
    return Error(Code::kResourceExhausted, "cannot start the command").sys(errno, "eventfd or timerfd").next("run fewer at once");
  if (!run->is_helper()) run->mark_ = run->instance_->next_mark();
  const auto& timeout = run->request_.timeout;
  // The daemon ends it, too, should we be gone by then; what may be detached has no such end.
  std::optional<milliseconds> lives;
  if (timeout && run->request_.purpose != command::Purpose::kSpawn && *timeout < kForever / 2)
    lives = *timeout + run->request_.limits.kill_grace + kBackstop;
  run->heard_ = Steady::now();
  run->ending_.clock().begin(run->heard_);
  run->stream_ = BELLJAR_TRY(run->instance_->envd().start(run->start_message(), lives));
  return run;
}

std::string E2bCommand::start_message() const {
  Json process = {{"cmd", request_.command.argv[0]}, {"cwd", request_.cwd}};
  process["args"] = std::vector<std::string>(request_.command.argv.begin() + 1, request_.command.argv.end());
  process["envs"] = request_.command.env;
  if (!mark_.empty()) process["envs"][kMark] = mark_;
  Json message = {{"process", std::move(process)}, {"stdin", request_.stdin_pipe || !request_.stdin_bytes.empty()}};
  if (request_.terminal) message["pty"] = {{"size", {{"cols", request_.terminal->columns}, {"rows", request_.terminal->rows}}}};
  return message.dump();
}

std::string E2bCommand::selector() const { return format(R"({{"pid":{}}})", pid_.load()); }

// --- the waiter

int E2bCommand::await_start() {
  while (!started_ && !over()) turn();
  return pid_.load();
}

void E2bCommand::close() {
  done_.ring();
  const itimerspec soon{.it_interval = {}, .it_value = {.tv_sec = kLastAnswer.count(), .tv_nsec = 0}};
  ::timerfd_settime(past_.get(), 0, &soon, nullptr);
  if (feeder_.joinable()) feeder_.join();
  // The connection serves the next command when this reply has been read to its end.
  for (const auto until = Steady::now() + kLastWords; ended_ && Steady::now() < until;) {
    const auto came = stream_->wait(until, {});
    if (!came || *came != http::Stream::Progress::kSomething) break;
    (void)stream_->take();
  }
  stream_.reset();
}

void E2bCommand::wait(std::optional<Time> due) {
  Time next = heard_ + 3 * kKeepalive;  // a live stream says something that often
  if (!started_) next = std::min<Time>(next, ending_.clock().begun() + instance_->envd().patience());
  if (due) next = std::min(next, *due);
  const auto came = stream_->wait(next, control_fds());
  if (!came) return lose(came.error().reason());
  if (*came == http::Stream::Progress::kSomething) {
    take_bytes();
    heard_ = Steady::now();  // after the callbacks: what the caller's reader takes is no silence of the command
    if (ending_.clock().hopeless(heard_ - kLastWords)) lose("its end was not told");  // it talks on, and is not to be ended
  } else if (*came == http::Stream::Progress::kNothing) {
    check_silence(Steady::now());
  } else if (*came == http::Stream::Progress::kEnd) {
    if (!begun_) take_head();
    if (over()) return;
    if (is_stream_) return lose("the stream broke off");
    refused_ = instance_->envd().refusal(stream_->head(), body_, kNotStarted);
    if (!refused_)
      lose("it answered with something else, of the type " + belljar::quoted(stream_->head().content_type.substr(0, 80)));
  }
}

void E2bCommand::take_head() {
  begun_ = true;
  const http::Reply head = stream_->head();
  is_stream_ = head.status == 200 && head.content_type.starts_with("application/connect+json");
}

void E2bCommand::take_bytes() {
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

void E2bCommand::handle(const Event& event) {
  if (ended_) return;
  if (!started_ && (event.kind == EventKind::kStdout || event.kind == EventKind::kStderr || event.kind == EventKind::kEnd))
    return lose("it speaks of a command before its start");
  switch (event.kind) {
    case EventKind::kStart:
      if (started_) return;
      started_ = true;
      ending_.clock().begin(Steady::now());
      pid_ = static_cast<int>(event.pid);
      if (!request_.stdin_bytes.empty()) feeder_ = std::thread([this] { feed(); });
      if (ending_.ending()) end_tree(ending_.clock().in_grace() ? SIGTERM : SIGKILL);
      break;
    case EventKind::kStdout:
      take(command::Stream::kOut, event.bytes);
      break;
    case EventKind::kStderr:
      take(command::Stream::kErr, event.bytes);
      break;
    case EventKind::kEnd:
      ended_ = event.signal != 0 ? event.signal : event.exit_code << 8;  // as wait(2) has it
      break;
    case EventKind::kOther:
      break;
  }
}

void E2bCommand::handle_last(std::string_view json) {
  if (ended_) return;
  const auto last = parse_last(json);
  if (!last) return lose(last.error().reason());
  if (!*last) return lose("the stream ended before the command did");
  const Complaint& complaint = **last;
  if (!started_) {
    refused_ = explain(complaint);
    return;
  }
  if (complaint.code == Code::kDeadlineExceeded)
    ending_.stop({Reason::kTimeout,
                  request_.timeout ? timeout_message(*request_.timeout) : "the service ended the command at a deadline of its own"},
                 command::EndMode::kAtOnce, Steady::now());
  lose(instance_->envd().refused(complaint, "the command was lost").reason());
}

// Why the daemon did not start it, of a file system that is not ours to look into.
Error E2bCommand::explain(const Complaint& complaint) {
  Error said = instance_->envd().refused(complaint, kNotStarted);
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

// Only when nothing waits to be read.
void E2bCommand::check_silence(Time now) {
  const bool silent = now >= heard_ + 3 * kKeepalive;
  if (over()) return;
  if (ending_.clock().hopeless(now)) lose("its end was not told");
  else if (started_ && silent) lose("nothing was heard of it, not even that it lives");
  else if (!started_ && (silent || now >= ending_.clock().begun() + instance_->envd().patience())) lose("no answer in time");
}

// The daemon signals one process; a helper finds the others.
void E2bCommand::end_tree(int signal) {
  if (kill_failed_) return;  // it was waited for once
  const auto until = Steady::now() + (is_helper() ? kHelperEnding : kEnding);
  const bool done = !mark_.empty() && instance_->kill_marked(mark_, signal, kEnding);
  if (pid_.load() == 0 || (done && signal != SIGKILL)) return;
  const auto left = std::chrono::duration_cast<milliseconds>(until - Steady::now());
  // Also when the helper did it: after a KILL through it the daemon ends the stream, whoever still holds the output.
  const auto sent = instance_->envd().call(
      "process.Process/SendSignal",
      format(R"({{"process":{},"signal":"{}"}})", selector(), signal == SIGKILL ? "SIGNAL_SIGKILL" : "SIGNAL_SIGTERM"),
      "cannot signal the command", std::max<milliseconds>(left, kHelperEnding), -1);
  kill_failed_ = signal == SIGKILL && !done && !sent;
}

// --- from other threads

// stdin of an exec: on a thread of its own, since a command may write a lot before it reads.
void E2bCommand::feed() {
  const std::string& bytes = request_.stdin_bytes;
  for (std::size_t at = 0; at < bytes.size(); at += kInputPiece) {
    if (!send_input(std::string_view(bytes).substr(at, kInputPiece), kForever, done_.get())) return;  // nobody reads it
  }
  (void)close_input();
}

Result<void> E2bCommand::send_input(std::string_view bytes, milliseconds patience, int cancel_fd) {
  const std::string message =
      format(R"({{"process":{},"input":{{"{}":"{}"}}}})", selector(), request_.terminal ? "pty" : "stdin", to_base64(bytes));
  auto sent =
      instance_->envd().call("process.Process/SendInput", message, "cannot write to the command's stdin", patience, cancel_fd);
  if (sent) return {};
  if (sent.error().code() == Code::kCanceled) return command::no_input("the command has ended");
  if (sent.error().code() == Code::kDeadlineExceeded) return command::not_read(patience);
  const Code code = sent.error().code();
  if (code == Code::kUnavailable || code == Code::kUnauthenticated || code == Code::kResourceExhausted) {
    lose_input(sent.error().reason());
    return sent.error();
  }
  return command::no_input("nobody reads it any more: " + sent.error().reason());
}

Result<void> E2bCommand::write(std::string_view bytes, milliseconds patience) {
  if (!request_.stdin_pipe && !request_.terminal) return command::no_input("it was spawned without a pipe for it");
  if (input_closed_.load()) return command::no_input("the pipe is closed");
  const auto deadline = Steady::now() + bounded(patience);
  while (!bytes.empty()) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Steady::now());
    // Not ended at once with the command: what made it end may be these bytes, and their answer be on its way.
    BELLJAR_CHECK(send_input(bytes.substr(0, kInputPiece), std::max(left, 1ms), past_.get()));
    bytes.remove_prefix(std::min(kInputPiece, bytes.size()));
  }
  return {};
}

Result<void> E2bCommand::close_input() {
  if (request_.terminal) return write("\x04", 30s);
  if (input_closed_.exchange(true)) return {};
  const auto closed = instance_->envd().call("process.Process/CloseStdin", format(R"({{"process":{}}})", selector()),
                                             "cannot close the command's stdin", 30s, done_.get());
  // The command may have ended because of it before the answer came.
  if (closed || closed.error().code() == Code::kCanceled || closed.error().code() == Code::kNotFound) return {};
  if (closed.error().code() != Code::kInternal) lose_input(closed.error().reason());  // kInternal: it was closed already
  return closed.error();
}

Result<void> E2bCommand::resize(unsigned short rows, unsigned short columns) {
  if (!request_.terminal) return command::no_terminal();
  return instance_->envd()
      .call("process.Process/Update",
            format(R"({{"process":{},"pty":{{"size":{{"cols":{},"rows":{}}}}}}})", selector(), columns, rows),
            "cannot resize the terminal")
      .map([](const std::string&) {});
}

Result<void> E2bCommand::signal(int number) {
  if (pid_.load() == 0)  // to kill(1) our own group
    return Error(Code::kFailedPrecondition, "cannot signal the command").reason("it was not started");
  const std::string pid = std::to_string(pid_.load());
  const auto helped = instance_->help(
      {"/bin/sh", "-c", R"(kill "-$1" -- "-$2" 2>/dev/null || kill "-$1" "$2")", "sh", std::to_string(number), pid});
  if (!helped) return helped.error();
  if (helped->exit_code == 0) return {};
  return Error(Code::kFailedPrecondition, "cannot signal the command").reason(escaped(helped->err.substr(0, 200)));
}

}  // namespace belljar::remote::e2b
