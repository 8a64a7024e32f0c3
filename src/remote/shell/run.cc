#include "remote/shell/run.h"

#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
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
#include "belljar/sandbox.h"
#include "belljar/units.h"
#include "remote/shell/core.h"
#include "remote/shell/looked.h"
#include "remote/shell/machine.h"
#include "remote/shell/scripts.h"
#include "runtime/run.h"
#include "runtime/supervise.h"

namespace belljar::remote::shell {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr milliseconds kHopeless = 5s;      // after the last signal: its end is not waited for any more
constexpr milliseconds kEnding = 5s;        // for all that is asked of the service to end a command
constexpr milliseconds kHelperEnding = 1s;  // the same, of a helper that was cancelled
constexpr milliseconds kClockSlack = 5s;    // the clock inside has that long to be right
constexpr milliseconds kLongestClock = std::chrono::hours(24 * 3650);
constexpr std::size_t kMostPiece = 4U << 20;  // of output in one answer
constexpr std::uint64_t kMuch = 8U << 20;     // that is only counted, and worth an answer
constexpr unsigned kMostNonsense = 8;
constexpr unsigned kTrusted = 4;    // answers that make sense: then more is asked for again
constexpr std::size_t kHead = 200;  // of an answer, without the output
constexpr char kNotStarted[] = "cannot start the command in the sandbox";

Error no_input(std::string reason) {
  return Error(Code::kFailedPrecondition, "cannot write to the command's stdin").reason(std::move(reason));
}

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

Run::Run(std::shared_ptr<Core> core, RunRequest request)
    : core_(std::move(core)),
      request_(std::move(request)),
      number_(core_->next_number()),
      mark_(format("{}-{}.", core_->nonce(), number_)),
      wake_(either(wishes_.get(), request_.cancel.fd())),
      budget_(bytes_in(core_->machine().limits().output)),
      out_{.capture = command::Capture(request_.output_bytes), .callback = request_.on_stdout},
      err_{.capture = command::Capture(request_.output_bytes), .callback = request_.on_stderr},
      sent_(Clock::now()) {}

Result<std::shared_ptr<Run>> Run::start(std::shared_ptr<Core> core, RunRequest request) {
  std::shared_ptr<Run> run(new Run(std::move(core), std::move(request)));
  if (!run->wishes_.valid() || !run->wake_.valid())
    return Error(Code::kResourceExhausted, "cannot start the command").sys(errno, "eventfd or epoll").next("run fewer at once");
  run->core_->add(run);
  return run;
}

// --- the waiter

int Run::await_start() {
  while (pid_.load() == 0 && !over()) turn(true);
  return pid_.load();
}

Result<ExecResult> Run::finish() {
  while (!over()) turn(false);
  over_at_ = Clock::now();
  if (ended_ && kill_at_ && !core_->ending()) end_tree(SIGKILL, kEnding);  // its leader went at once, others may not have
  // What may still come is to find its place taken.
  if (sent_off_ && !unsure_ && !detached_seen_) core_->retire(number_);
  if (thrown_) std::rethrow_exception(thrown_);
  if (refused_ && !not_run_) return *refused_;
  return result();
}

void Run::turn(bool until_started) {
  check_deadlines(Clock::now());
  if (over()) return;
  if (sent_off_) look(until_started);
  else begin(until_started);
  if (!over()) look_at_wishes();
}

std::string Run::in_directory() const {
  return format("cd {}/{} 2>/dev/null || {{ echo gone; exit; }}\n", word(core_->directory()), number_);
}

// Data that does not fit into the call that starts it goes there before.
void Run::begin(bool until_started) {
  const std::string go = go_script(request_.command, request_.cwd, !request_.stdin_bytes.empty(), request_.stdin_pipe);
  const std::size_t room = core_->payload();
  const bool with_go = go.size() <= room;
  const bool with_input = request_.stdin_bytes.size() <= room - (with_go ? go.size() : 0);
  Result<void> brought;
  if (!with_go) brought = core_->upload(format("{}/go", number_), go, wake_fd());
  if (brought && !with_input) brought = core_->upload(format("{}/in", number_), request_.stdin_bytes, wake_fd());
  if (!brought) return end_unsent(brought.error());
  std::string carried;
  if (with_go) carried += format("printf %s {} | base64 -d >go\n", to_base64(go));
  if (with_input && !request_.stdin_bytes.empty())
    carried += format("printf %s {} | base64 -d >in\n", to_base64(request_.stdin_bytes));
  auto turn = core_->turn(Turns::Kind::kBegin, wake_fd());
  if (!turn) return end_unsent(turn.error());
  sent_ = Clock::now();
  sent_off_ = true;
  const std::string script =
      format("cd {} || exit 1\n{}mkdir -p {} && cd {} && mkdir claim || exit 1\n{}{}exec sh ../look {}", word(core_->directory()),
             core_->sweep(), number_, number_, carried, start_script(), look_words(until_started));
  const auto said = core_->once(std::move(*turn), script, core_->wait(), wake_fd());
  if (said) return take(*said);
  start_error_ = said.error().reason().empty() ? said.error().what() : said.error().reason();
  const Code code = said.error().code();
  if (code == Code::kUnavailable || code == Code::kDeadlineExceeded || code == Code::kCanceled || code == Code::kDataLoss) {
    unsure_ = true;  // the next look finds out
    return;
  }
  gone_ = true;
  refused_ = not_started(said.error());
}

void Run::end_unsent(const Error& why) {
  look_at_wishes();
  gone_ = true;
  if (!cause_) refused_ = not_started(why);
}

std::string Run::start_script() const {
  const bool clocked = request_.timeout && *request_.timeout < kLongestClock;
  return format("{}{}setsid sh ../watch {} {} {} </dev/null >/dev/null 2>&1 &\n", request_.stdin_pipe ? "mkfifo in wake\n" : "",
                core_->reset(), mark_, clocked ? seconds(*request_.timeout) : "-", seconds(request_.limits.kill_grace));
}

std::string Run::look_words(bool until_started) const {
  const bool prompt = out_.callback || err_.callback || request_.limits.output_action == OutputAction::kKill;
  const bool counted = out_.counted() && err_.counted();
  const std::uint64_t enough = prompt ? 1 : counted ? kMuch : budget_;
  const auto left = std::chrono::duration_cast<milliseconds>(next_deadline() - Clock::now());
  const milliseconds wait = std::clamp(left, 0ms, core_->wait());
  return format("{} {} {} {} {} {} {} {} {} {}", until_started && pid_.load() == 0 ? "pid" : "end", wait.count(), budget_, enough,
                out_.base, out_.at, out_.counted() ? 1 : 0, err_.base, err_.at, err_.counted() ? 1 : 0);
}

void Run::look(bool until_started) {
  std::string script = in_directory();
  // Whether the start arrived. It is told apart by who makes a directory: then it never will.
  if (unsure_)
    script = format("cd {} && mkdir -p {} && cd {} || {{ echo gone; exit; }}\nmkdir claim 2>/dev/null && {{ echo never; exit; }}\n",
                    word(core_->directory()), number_, number_);
  const auto said = core_->again(script + "exec sh ../look " + look_words(until_started), core_->wait(), wake_fd());
  if (said) return take(*said);
  if (said.error().code() == Code::kCanceled) return;
  lose(said.error().reason().empty() ? said.error().what() : said.error().reason());
}

void Run::take(const Said& said) {
  if (said.out.starts_with("never")) {
    gone_ = true;
    if (!cause_)
      refused_ =
          not_started(Error(Code::kUnavailable, kNotStarted).reason(start_error_.empty() ? "it did not arrive" : start_error_));
    return;
  }
  if (said.out.starts_with("gone")) return lose("its private directory there is gone");
  const auto looked = parse_looked(said.out, out_.counted(), err_.counted());
  if (!looked) {  // cut, perhaps: all of it can be asked again, and smaller
    if (!started_) unsure_ = true;
    budget_ = std::max<std::size_t>(budget_ / 2, 57);
    good_ = 0;
    if (++nonsense_ > kMostNonsense) lose(looked.error().reason());
    return;
  }
  nonsense_ = 0;
  unsure_ = false;
  if (++good_ % kTrusted == 0) budget_ = std::min(2 * budget_, bytes_in(core_->machine().limits().output));
  started_ = sent_;
  pid_ = looked->pid;
  if (looked->late && !cause_) {
    cause_ = Reason::kTimeout;
    message_ = timeout_message(request_.timeout.value_or(0ms));
    hopeless_ = Clock::now() + request_.limits.kill_grace + kHopeless;
  }
  if (!looked->failed.empty() && looked->status) return explain(*looked);
  take(out_, looked->out);
  take(err_, looked->err);
  if (looked->status && !looked->out.more && !looked->err.more) ended_ = *looked;
  else if (looked->lost) lose("what looked after it in the sandbox was ended");
}

void Run::take(Stream& stream, const Piece& piece) {
  stream.base = piece.base;
  stream.at += piece.count;
  if (piece.bytes.empty()) return stream.capture.skip(piece.count);
  stream.capture.append(piece.bytes);
  if (stream.callback && !thrown_ && !detached_.load()) {
    try {
      stream.callback(piece.bytes);
    } catch (...) {
      thrown_ = std::current_exception();
      stop(Reason::kCancelled, "a callback of the caller failed", 0ms);
    }
  }
  if (stream.capture.over() && request_.limits.output_action == OutputAction::kKill)
    stop(Reason::kOutput, format("the output exceeded the limit of {} bytes", request_.output_bytes), 0ms);
}

// Why it did not become a process, and what its shell said of it.
void Run::explain(const Looked& looked) {
  ended_ = looked;
  if (looked.failed != "126" && looked.failed != "127") {
    const bool missing = looked.failed == "missing";
    refused_ = Error(missing                     ? Code::kNotFound
                     : looked.failed == "closed" ? Code::kPermissionDenied
                                                 : Code::kFailedPrecondition,
                     format("cannot use as working directory {}", belljar::quoted(request_.cwd)))
                   .reason(missing                     ? "it is not there"
                           : looked.failed == "closed" ? "it may not be entered"
                                                       : "it is a file");
    return;
  }
  not_run_ = true;
  const bool missing = looked.failed == "127";
  const std::string& text = looked.err.bytes;
  refused_ =
      Error(missing ? Code::kNotFound : Code::kPermissionDenied, format("cannot run {}", belljar::quoted(request_.command.argv[0])))
          .reason(escaped(text.substr(0, std::min<std::size_t>(text.find('\n'), 300))))
          .next("check the name, or use an image that has it")
          .exit_code(missing ? 127 : 126);
}

Error Run::not_started(const Error& why) const {
  return Error(why.code(), kNotStarted)
      .reason(why.reason().empty() ? why.what() : why.reason())
      .next("try again, or look whether the sandbox lives");
}

// --- ending it

Run::Clock::time_point Run::next_deadline() const {
  auto next = Clock::now() + 1h;
  if (hopeless_) next = std::min(next, *hopeless_);
  if (kill_at_) next = std::min(next, *kill_at_);
  if (!cause_ && request_.timeout && *request_.timeout < kLongestClock)
    next = std::min<Clock::time_point>(next, sent_ + *request_.timeout + kClockSlack);
  return next;
}

void Run::check_deadlines(Clock::time_point now) {
  if (!sent_off_ || now < next_deadline()) return;
  if (kill_at_ && now >= *kill_at_) {
    kill_at_.reset();
    end_tree(SIGKILL, kEnding);
    hopeless_ = Clock::now() + kHopeless;
  } else if (hopeless_ && now >= *hopeless_) {
    lose("its end was not told");
  } else if (!cause_ && request_.timeout) {  // the clock inside did not do it
    stop(Reason::kTimeout, timeout_message(*request_.timeout), request_.limits.kill_grace);
  }
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
  else if (detached_.load()) let_go();
  else if (core_->ending()) stop(Reason::kCancelled, "the sandbox ended before the command did", 0ms);
  else if (cancelled_.load() || request_.cancel.cancelled())
    stop(Reason::kCancelled, "cancelled by the caller", request_.limits.kill_grace);
}

void Run::stop(Reason reason, std::string message, milliseconds grace) {
  if (cause_) return;
  cause_ = reason;
  message_ = std::move(message);
  if (over() || !sent_off_) return;
  if (request_.helper && reason == Reason::kCancelled) {
    gone_ = true;
    if (!core_->ending()) end_tree(SIGKILL, kHelperEnding);
    return;
  }
  const bool gently = grace > 0ms && !core_->ending();
  if (gently) kill_at_ = Clock::now() + grace;
  if (!core_->ending()) end_tree(gently ? SIGTERM : SIGKILL, kEnding);
  hopeless_ = std::max(Clock::now(), kill_at_.value_or(Clock::time_point())) + kHopeless;
}

void Run::end_tree(int signal, milliseconds patience) { (void)core_->kill_marked(mark_, signal, number_, patience); }

// What cannot be seen any more must not run on.
void Run::lose(std::string why) {
  if (over()) return;
  gone_ = true;
  lost_ = std::move(why);
  if (!core_->ending()) end_tree(SIGKILL, kEnding);
  if (!started_ && !cause_) refused_ = not_started(Error(Code::kUnavailable, kNotStarted).reason(lost_));
}

// Its clock and its readers see the mark, and it clears up after itself.
void Run::let_go() {
  detached_seen_ = true;
  (void)core_->again(in_directory() + ": >left", 0ms, -1);
}

// --- what came of it

ExecResult Run::result() {
  if (refused_) return runtime::failed_start(*refused_);
  ExecResult result;
  set_end(result);
  result.out = std::move(out_.capture).finish();
  result.err = std::move(err_.capture).finish();
  if (result.out.omitted > 0 || result.err.omitted > 0) result.limits_hit.emplace_back("output");
  return result;
}

void Run::set_end(ExecResult& result) const {
  result.duration = std::chrono::duration_cast<std::chrono::microseconds>(over_at_ - sent_);
  if (!ended_) {
    result.exit_code = cause_ == Reason::kTimeout ? 124 : 128 + SIGKILL;
    result.signal = SIGKILL;
    result.reason = cause_.value_or(Reason::kCancelled);
    result.message = cause_ ? message_ : "the command was lost and ended: " + lost_;
    return;
  }
  const int status = ended_->status.value_or(0);
  runtime::set_exit(result, ended_->signalled ? (status - 128) & 0x7F : (status & 0xFF) << 8);
  const bool with_sandbox = !cause_ && core_->ending();
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

// "taken", "broken", "ended", "waiting", "gone".
Result<std::string> Run::put(std::string_view piece, unsigned number, Clock::time_point deadline) const {
  const std::string carried = to_base64(piece);
  for (;;) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    const milliseconds wait = std::clamp(left, 0ms, core_->wait());
    const Said said = BELLJAR_TRY(core_->again(
        format("{}printf %s {} | base64 -d | sh ../put {} {}", in_directory(), carried, number, wait.count()), wait, -1));
    std::string word = said.out.substr(0, said.out.find('\n'));
    if (word != "waiting" || Clock::now() >= deadline) return word;
  }
}

Result<void> Run::write(std::string_view bytes, milliseconds patience) {
  if (!request_.stdin_pipe) return no_input("it was spawned without a pipe for it");
  if (input_closed_.load()) return no_input("the pipe is closed");
  const auto deadline = Clock::now() + bounded(patience);
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, core_->payload());
    bytes.remove_prefix(piece.size());
    const auto answer = put(piece, pieces_++, deadline);
    if (!answer) {
      lose_input(answer.error().reason());
      return answer.error();
    }
    if (*answer == "taken") continue;
    if (*answer == "waiting")
      return Error(Code::kDeadlineExceeded, "cannot write to the command's stdin")
          .reason(format("it did not read for {}", to_string(patience)));
    return no_input(*answer == "broken" ? "nobody reads it any more" : "the command has ended");
  }
  return {};
}

void Run::lose_input(const std::string& why) {
  {
    const std::lock_guard lock(input_mutex_);
    if (input_lost_.empty()) input_lost_ = why.empty() ? "the service gave no reason" : why;
  }
  wishes_.ring();
}

Result<void> Run::close_input() {
  if (!request_.stdin_pipe || input_closed_.exchange(true)) return {};
  const auto said = core_->again(in_directory() + ": >closed && echo 1<>wake", 0ms, -1);
  if (said) return {};
  lose_input(said.error().reason());
  return said.error();
}

Result<void> Run::resize(unsigned short /*rows*/, unsigned short /*columns*/) {
  return Error(Code::kFailedPrecondition, "cannot resize the terminal").reason("the command was spawned without one");
}

Result<void> Run::signal(int number) {
  if (pid_.load() == 0)  // to kill(1) our own group
    return Error(Code::kFailedPrecondition, "cannot signal the command").reason("it was not started");
  const int pid = pid_.load();
  const Said said =
      BELLJAR_TRY(core_->once(format("kill -{} -- -{} 2>/dev/null || kill -{} {}", number, pid, number, pid), 0ms, -1));
  if (said.exit_code == 0) return {};
  return Error(Code::kFailedPrecondition, "cannot signal the command").reason(escaped(said.err.substr(0, 200)));
}

}  // namespace belljar::remote::shell
