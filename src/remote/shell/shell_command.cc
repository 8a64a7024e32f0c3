// One command where a call carries a script and its answer comes at the end: start it in the background, look
// how it goes, by offset.
//
// The start is sent once. When its answer is lost, nobody knows whether it began, and neither to send it again
// nor to give up would be right. The directory `claim` decides: mkdir(2) succeeds for exactly one, the start or
// the look that comes after it. If the look gets it, the start has not begun, and never will. If it is taken,
// the start came first, and the command is looked at like any other.
//
// The call that starts a command also looks, so a short command is one call. What does not fit into a script is
// brought before, into the files `go` and `in`.
//
// An answer that makes no sense was cut, most likely, so less is asked for: the budget is halved at once and
// doubled only after several good answers. A fixed smaller budget would make every large output slow.
//
// The timeout is kept inside by `watch`, which runs on when this machine is gone. The clock here waits some
// seconds longer and acts only when the one inside did not.
#include "remote/shell/shell_command.h"

#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/encoding.h"
#include "base/format.h"
#include "base/patience.h"
#include "base/unique_fd.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "command/ending.h"
#include "command/request.h"
#include "command/running_command.h"
#include "command/streams.h"
#include "remote/remote_command.h"
#include "remote/shell/command_status.h"
#include "remote/shell/machine.h"
#include "remote/shell/scripts.h"
#include "remote/shell/shell_instance.h"

namespace belljar::remote::shell {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr milliseconds kClockSlack = 5s;  // the clock inside has that long to be right
constexpr milliseconds kLongestClock = std::chrono::hours(24 * 3650);
constexpr std::size_t kMostPiece = 4U << 20;  // of output in one answer
constexpr std::uint64_t kMuch = 8U << 20;     // that is only counted, and worth an answer
constexpr unsigned kMostNonsense = 8;
constexpr unsigned kTrusted = 4;    // answers that make sense: then more is asked for again
constexpr std::size_t kHead = 200;  // of an answer, without the output
// base64(1) breaks its lines after 57 bytes.
std::size_t bytes_in(std::size_t characters) {
  return std::clamp<std::size_t>(characters > kHead ? (characters - kHead) / 77 * 57 : 0, 57, kMostPiece);
}

std::string seconds(milliseconds time) { return format("{}.{:03}", time.count() / 1000, time.count() % 1000); }

UniqueFd either(int first, int second) {
  UniqueFd both(::epoll_create1(EPOLL_CLOEXEC));
  for (const int fd : {first, second}) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (fd >= 0 && ::epoll_ctl(both.get(), EPOLL_CTL_ADD, fd, &event) != 0) return {};
  }
  return both;
}

}  // namespace

ShellCommand::ShellCommand(std::shared_ptr<ShellInstance> instance, command::Request request)
    : RemoteCommand(std::move(request), kHopeless, kClockSlack),
      instance_(std::move(instance)),
      number_(instance_->next_number()),
      mark_(format("{}-{}.", instance_->nonce(), number_)),
      wake_(either(control_wake_.get(), request_.cancel.fd())),
      budget_(bytes_in(instance_->machine().limits().output)) {
  ending_.clock().begin(Steady::now());
}

Result<std::shared_ptr<ShellCommand>> ShellCommand::start(std::shared_ptr<ShellInstance> instance, command::Request request) {
  std::shared_ptr<ShellCommand> run(new ShellCommand(std::move(instance), std::move(request)));
  if (!run->valid() || !run->wake_.valid())
    return Error(Code::kResourceExhausted, "cannot start the command").sys(errno, "eventfd or epoll").next("run fewer at once");
  return run;
}

// --- the waiter

int ShellCommand::await_start() {
  until_started_ = true;
  while (pid_.load() == 0 && !over()) turn();
  until_started_ = false;
  return pid_.load();
}

// What may still come is to find its place taken.
void ShellCommand::close() {
  if (sent_off_ && !unsure_ && !left_) instance_->retire(number_);
}

void ShellCommand::wait(std::optional<Time> due) {
  due_ = due;
  if (sent_off_) poll_status();
  else begin();
}

std::string ShellCommand::in_directory() const {
  return format("cd {}/{} 2>/dev/null || {{ echo gone; exit; }}\n", word(instance_->directory()), number_);
}

// Data that does not fit into the call that starts it goes there before.
void ShellCommand::begin() {
  const std::string go = go_script(request_.command, request_.cwd, !request_.stdin_bytes.empty(), request_.stdin_pipe);
  const std::size_t room = instance_->payload();
  const bool with_go = go.size() <= room;
  const bool with_input = request_.stdin_bytes.size() <= room - (with_go ? go.size() : 0);
  Result<void> brought;
  if (!with_go) brought = instance_->upload(format("{}/go", number_), go, wake_fd());
  if (brought && !with_input) brought = instance_->upload(format("{}/in", number_), request_.stdin_bytes, wake_fd());
  if (!brought) return end_unsent(brought.error());
  std::string carried;
  if (with_go) carried += format("printf %s {} | base64 -d >go\n", to_base64(go));
  if (with_input && !request_.stdin_bytes.empty())
    carried += format("printf %s {} | base64 -d >in\n", to_base64(request_.stdin_bytes));
  auto turn = instance_->turn(Turns::Kind::kBegin, wake_fd());
  if (!turn) return end_unsent(turn.error());
  ending_.clock().begin(Steady::now());
  sent_off_ = true;
  const std::string script =
      format("cd {} || exit 1\n{}mkdir -p {} && cd {} && mkdir claim || exit 1\n{}{}exec sh ../look {}",
             word(instance_->directory()), instance_->sweep(), number_, number_, carried, start_script(), poll_arguments());
  const auto said = instance_->once(std::move(*turn), script, instance_->wait(), wake_fd());
  if (said) return handle_output(*said);
  start_error_ = said.error().reason().empty() ? said.error().what() : said.error().reason();
  const Code code = said.error().code();
  if (code == Code::kUnavailable || code == Code::kDeadlineExceeded || code == Code::kCanceled || code == Code::kDataLoss) {
    unsure_ = true;  // the next look finds out
    return;
  }
  gone_ = true;
  refused_ = not_started(said.error());
}

void ShellCommand::end_unsent(const Error& why) {
  handle_control();
  gone_ = true;
  if (!ending_.ending()) refused_ = not_started(why);
}

std::string ShellCommand::start_script() const {
  const bool clocked = request_.timeout && *request_.timeout < kLongestClock;
  return format("{}{}setsid sh ../watch {} {} {} </dev/null >/dev/null 2>&1 &\n", request_.stdin_pipe ? "mkfifo in wake\n" : "",
                instance_->reset(), mark_, clocked ? seconds(*request_.timeout) : "-", seconds(request_.limits.kill_grace));
}

std::string ShellCommand::poll_arguments() const {
  const bool count_out = streams_.counts(command::Stream::kOut), count_err = streams_.counts(command::Stream::kErr);
  const std::uint64_t enough = streams_.prompt() ? 1 : count_out && count_err ? kMuch : budget_;
  const auto left = std::chrono::duration_cast<milliseconds>(due_.value_or(Time::max()) - Steady::now());
  const milliseconds wait = std::clamp(left, 0ms, instance_->wait());
  return format("{} {} {} {} {} {} {} {} {} {}", until_started_ && pid_.load() == 0 ? "pid" : "end", wait.count(), budget_, enough,
                out_.base, out_.at, count_out ? 1 : 0, err_.base, err_.at, count_err ? 1 : 0);
}

void ShellCommand::poll_status() {
  std::string script = in_directory();
  // Whether the start arrived. It is told apart by who makes a directory: then it never will.
  if (unsure_)
    script = format("cd {} && mkdir -p {} && cd {} || {{ echo gone; exit; }}\nmkdir claim 2>/dev/null && {{ echo never; exit; }}\n",
                    word(instance_->directory()), number_, number_);
  const auto said = instance_->again(script + "exec sh ../look " + poll_arguments(), instance_->wait(), wake_fd());
  if (said) return handle_output(*said);
  if (said.error().code() == Code::kCanceled) return;
  lose(said.error().reason().empty() ? said.error().what() : said.error().reason());
}

void ShellCommand::handle_output(const ScriptOutput& said) {
  if (said.out.starts_with("never")) {
    gone_ = true;
    if (!ending_.ending())
      refused_ =
          not_started(Error(Code::kUnavailable, kNotStarted).reason(start_error_.empty() ? "it did not arrive" : start_error_));
    return;
  }
  if (said.out.starts_with("gone")) return lose("its private directory there is gone");
  const auto status =
      parse_command_status(said.out, streams_.counts(command::Stream::kOut), streams_.counts(command::Stream::kErr));
  if (!status) {  // cut, perhaps: all of it can be asked again, and smaller
    if (!started_) unsure_ = true;
    budget_ = std::max<std::size_t>(budget_ / 2, 57);
    good_ = 0;
    if (++nonsense_ > kMostNonsense) lose(status.error().reason());
    return;
  }
  nonsense_ = 0;
  unsure_ = false;
  if (++good_ % kTrusted == 0) budget_ = std::min(2 * budget_, bytes_in(instance_->machine().limits().output));
  started_ = true;
  pid_ = status->pid;
  if (status->late)
    ending_.stop({Reason::kTimeout, timeout_message(request_.timeout.value_or(0ms))}, command::EndMode::kInside, Steady::now());
  if (!status->failed.empty() && status->status) return explain(*status);
  add_piece(command::Stream::kOut, status->out);
  add_piece(command::Stream::kErr, status->err);
  const int code = status->status.value_or(0);
  if (status->status && !status->out.more && !status->err.more)
    ended_ = status->signalled ? (code - 128) & 0x7F : (code & 0xFF) << 8;  // as wait(2) has it
  else if (status->lost) lose("what looked after it in the sandbox was ended");
}

void ShellCommand::add_piece(command::Stream stream, const OutputPiece& piece) {
  Position& position = stream == command::Stream::kOut ? out_ : err_;
  position.base = piece.base;
  position.at += piece.count;
  if (piece.bytes.empty()) streams_.skip(stream, piece.count);
  else take(stream, piece.bytes);
}

// Why it did not become a process, and what its shell said of it.
void ShellCommand::explain(const CommandStatus& status) {
  ended_ = 0;
  if (status.failed != "126" && status.failed != "127") {
    const bool missing = status.failed == "missing";
    refused_ = Error(missing                     ? Code::kNotFound
                     : status.failed == "closed" ? Code::kPermissionDenied
                                                 : Code::kFailedPrecondition,
                     format("cannot use as working directory {}", belljar::quoted(request_.cwd)))
                   .reason(missing                     ? "it is not there"
                           : status.failed == "closed" ? "it may not be entered"
                                                       : "it is a file");
    return;
  }
  not_run_ = true;
  const bool missing = status.failed == "127";
  const std::string& text = status.err.bytes;
  refused_ =
      Error(missing ? Code::kNotFound : Code::kPermissionDenied, format("cannot run {}", belljar::quoted(request_.command.argv[0])))
          .reason(escaped(text.substr(0, std::min<std::size_t>(text.find('\n'), 300))))
          .next("check the name, or use an image that has it")
          .exit_code(missing ? 127 : 126);
}

// --- ending it

void ShellCommand::advance_end(command::EndAction act) {
  if (!sent_off_) return;
  if (!is_helper() || ending_.reason() != Reason::kCancelled) return RemoteCommand::advance_end(act);
  gone_ = true;  // its caller has no time
  if (!instance_->ending()) end_tree(SIGKILL, kHelperEnding);
}

void ShellCommand::end_tree(int signal, milliseconds patience) const {
  (void)instance_->kill_marked(mark_, signal, number_, patience);
}

// Its clock and its readers see the mark, and it clears up after itself.
void ShellCommand::let_go() { (void)instance_->again(in_directory() + ": >left", 0ms, -1); }

// --- from other threads

// "taken", "broken", "ended", "waiting", "gone".
Result<std::string> ShellCommand::put(std::string_view piece, unsigned number, Time deadline) const {
  const std::string carried = to_base64(piece);
  for (;;) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Steady::now());
    const milliseconds wait = std::clamp(left, 0ms, instance_->wait());
    const ScriptOutput said = BELLJAR_TRY(instance_->again(
        format("{}printf %s {} | base64 -d | sh ../put {} {}", in_directory(), carried, number, wait.count()), wait, -1));
    std::string word = said.out.substr(0, said.out.find('\n'));
    if (word != "waiting" || Steady::now() >= deadline) return word;
  }
}

Result<void> ShellCommand::write(std::string_view bytes, milliseconds patience) {
  if (!request_.stdin_pipe) return command::no_input("it was spawned without a pipe for it");
  if (input_closed_.load()) return command::no_input("the pipe is closed");
  const auto deadline = Steady::now() + bounded(patience);
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, instance_->payload());
    bytes.remove_prefix(piece.size());
    const auto answer = put(piece, pieces_++, deadline);
    if (!answer) {
      lose_input(answer.error().reason());
      return answer.error();
    }
    if (*answer == "taken") continue;
    if (*answer == "waiting") return command::not_read(patience);
    return command::no_input(*answer == "broken" ? "nobody reads it any more" : "the command has ended");
  }
  return {};
}

Result<void> ShellCommand::close_input() {
  if (!request_.stdin_pipe || input_closed_.exchange(true)) return {};
  const auto said = instance_->again(in_directory() + ": >closed && echo 1<>wake", 0ms, -1);
  if (said) return {};
  lose_input(said.error().reason());
  return said.error();
}

Result<void> ShellCommand::resize(unsigned short /*rows*/, unsigned short /*columns*/) { return command::no_terminal(); }

Result<void> ShellCommand::signal(int number) {
  if (pid_.load() == 0)  // to kill(1) our own group
    return Error(Code::kFailedPrecondition, "cannot signal the command").reason("it was not started");
  const int pid = pid_.load();
  const ScriptOutput said =
      BELLJAR_TRY(instance_->once(format("kill -{} -- -{} 2>/dev/null || kill -{} {}", number, pid, number, pid), 0ms, -1));
  if (said.exit_code == 0) return {};
  return Error(Code::kFailedPrecondition, "cannot signal the command").reason(escaped(said.err.substr(0, 200)));
}

}  // namespace belljar::remote::shell
