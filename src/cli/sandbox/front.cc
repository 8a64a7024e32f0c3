#include "cli/sandbox/front.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "front/pump.h"
#include "front/signals.h"
#include "front/terminal.h"
#include "front/told_to_end.h"

namespace belljar::cli {
namespace {

using Clock = std::chrono::steady_clock;
using front::Pump;
using std::chrono::milliseconds;

// A second ^C within this time means it.
constexpr milliseconds kImpatient{2000};
// Larger than any pipe: who still writes after the command's end is another process of the sandbox, and is not waited for.
constexpr std::uint64_t kDrainAtMost = 2U << 20;
// A background job looks this often whether it came to the foreground.
constexpr int kForegroundCheckMs = 250;
constexpr milliseconds kStart{60'000}, kGoodbye{2000};

class Front {
 public:
  Front(keeper::Channel& channel, front::Stdio& stdio, front::Signals& signals, front::RawTerminal& terminal, OverCap over_cap,
        milliseconds kill_grace)
      : channel_(channel), stdio_(stdio), signals_(signals), terminal_(terminal), told_(kill_grace), over_cap_(over_cap) {}

  Result<std::string> run() {
    BELLJAR_CHECK(take_result());  // it may have come together with the start
    while (!over()) BELLJAR_CHECK(turn());
    return std::move(*result_);
  }

 private:
  Pump* pump(std::size_t n) const { return n == 0 ? stdio_.input() : n == 1 ? stdio_.output() : stdio_.error(); }

  Result<void> turn() {
    if (stdio_.pty() && !result_) terminal_.enter();
    std::array<pollfd, 8> set{};
    set[0] = {signals_.fd(), POLLIN, 0};
    set[1] = {result_ ? -1 : channel_.fd(), POLLIN, 0};
    std::size_t count = 2;
    std::array<std::pair<std::size_t, int>, 3> at{};
    for (std::size_t n = 0; n < 3; ++n) {
      const bool wanted = pump(n) != nullptr && (n > 0 || !result_);
      at[n] = {count, wanted ? pump(n)->add_pollfds(&set[count]) : 0};
      count += static_cast<std::size_t>(at[n].second);
    }
    const int ready = ::poll(set.data(), count, patience());
    if (ready < 0) return {};
    if (told_.kill_at() && !result_ && Clock::now() >= *told_.kill_at()) kill_once();
    if (result_ && ready == 0 && !pending()) drained_ = true;
    if (set[0].revents != 0) take_signals();
    for (std::size_t n = 0; n < 3; ++n) {
      if (at[n].second > 0) pump(n)->handle(&set[at[n].first], at[n].second);
    }
    check_output_limit();
    // Last: when the end is known the streams are complete.
    return set[1].revents != 0 ? take_result() : Result<void>();
  }

  int patience() const {
    // After the end only a slow reader of ours is waited for.
    if (result_) return pending() ? -1 : 0;
    const bool waits = (stdio_.input() != nullptr && stdio_.input()->waits_for_foreground()) ||
                       (stdio_.pty() && terminal_.is_terminal() && !terminal_.is_raw());
    int patience = waits ? kForegroundCheckMs : -1;
    if (told_.kill_at() && !killed_) {
      const auto left = std::chrono::ceil<milliseconds>(*told_.kill_at() - Clock::now()).count();
      const int until_kill = static_cast<int>(std::clamp<std::int64_t>(left, 0, INT_MAX));
      patience = patience < 0 ? until_kill : std::min(patience, until_kill);
    }
    return patience;
  }

  bool pending() const { return (pump(1) != nullptr && pump(1)->pending() > 0) || (pump(2) != nullptr && pump(2)->pending() > 0); }

  bool over() const {
    if (!result_) return false;
    if (drained_) return true;
    for (std::size_t n = 1; n < 3; ++n) {
      if (pump(n) != nullptr && !pump(n)->done() && pump(n)->total() - read_at_end_[n] <= kDrainAtMost) return false;
    }
    return true;
  }

  Result<void> take_result() {
    auto message = BELLJAR_TRY(channel_.receive(milliseconds(0)));
    if (!message) return {};
    if (const auto error = message->message.find("error"); error != message->message.end()) return keeper::error_from(*error);
    result_ = message->message.at("result").get<std::string>();
    for (std::size_t n = 1; n < 3; ++n) read_at_end_[n] = pump(n) != nullptr ? pump(n)->total() : 0;
    if (stdio_.input() != nullptr) stdio_.input()->give_back();
    return {};
  }

  // The keeper ends the whole tree of the command, and tells why in its result.
  void check_output_limit() {
    if (over_cap_ != OverCap::kKill || told_limit_ || result_) return;
    for (std::size_t n = 1; n < 3; ++n) {
      if (pump(n) == nullptr || !pump(n)->over_cap()) continue;
      told_limit_ = true;
      (void)channel_.send({{"over_limit", n == 1 ? "stdout" : "stderr"}});
      return;
    }
  }

  void forward(int signal) {
    if (!result_) (void)channel_.send({{"signal", signal}});  // a keeper that is gone is seen when it is read from
  }

  void take_signals() {
    while (const auto signal = signals_.next()) {
      switch (*signal) {
        case SIGTSTP:
          suspend();
          break;
        case SIGCONT:
          terminal_.enter();
          copy_size();
          forward(SIGCONT);
          break;
        case SIGWINCH:
          copy_size();
          if (!stdio_.pty()) forward(SIGWINCH);
          break;
        case SIGINT:
          interrupt();
          break;
        case SIGTERM:
          if (result_) drained_ = true;
          if (told_.again(Clock::now())) kill_once();
          else forward(SIGTERM);
          break;
        default:
          forward(*signal);
          if (result_ && *signal != SIGUSR1 && *signal != SIGUSR2) drained_ = true;
      }
    }
  }

  void kill_once() {
    if (!std::exchange(killed_, true)) forward(SIGKILL);
  }

  void interrupt() {
    const Clock::time_point now = Clock::now();
    if (result_) drained_ = true;
    forward(interrupted_ && now - *interrupted_ < kImpatient ? SIGKILL : SIGINT);
    interrupted_ = now;
  }

  // The command's group is orphaned inside: SIGTSTP would be dropped there, SIGSTOP is not.
  void suspend() {
    forward(SIGSTOP);
    terminal_.restore();
    ::kill(::getpid(), SIGSTOP);
    // Continued: SIGCONT is waiting in the signal descriptor.
  }

  void copy_size() {
    if (!stdio_.pty()) return;
    if (const auto size = front::window_size(0)) stdio_.set_window_size(*size);
  }

  keeper::Channel& channel_;
  front::Stdio& stdio_;
  front::Signals& signals_;
  front::RawTerminal& terminal_;
  std::optional<std::string> result_;
  std::optional<Clock::time_point> interrupted_;
  front::ToldToEnd told_;
  std::uint64_t read_at_end_[3]{};
  bool drained_ = false, told_limit_ = false, killed_ = false;
  OverCap over_cap_;
};

// The ends that the command gets, in order; which there are goes into the call.
Result<void> send_call(keeper::Channel& channel, keeper::Json call, const front::Stdio& stdio) {
  std::vector<int> fds;
  keeper::Json streams = keeper::Json::array();
  for (int n = 0; n < 3; ++n) {
    const int fd = stdio.command_fd(n);
    streams.push_back(fd >= 0);
    if (fd >= 0) fds.push_back(fd);
  }
  call["streams"] = streams;
  call["terminal"] = nullptr;
  if (stdio.pty()) {
    const winsize size = front::window_size(1).value_or(winsize{24, 80, 0, 0});
    call["terminal"] = {size.ws_row, size.ws_col};
  }
  switch (fds.size()) {
    case 0:
      return channel.send(call);
    case 1:
      return channel.send(call, {fds[0]});
    case 2:
      return channel.send(call, {fds[0], fds[1]});
    default:
      return channel.send(call, {fds[0], fds[1], fds[2]});
  }
}

// The keeper's answer, unless a signal that would have ended us comes first: the connection closes then, and ends the command.
Result<keeper::Received> await_start(keeper::Channel& channel, front::Signals& signals) {
  const Clock::time_point deadline = Clock::now() + kStart;
  for (;;) {
    while (const auto signal = signals.next()) {
      if (*signal == SIGINT || *signal == SIGTERM || *signal == SIGHUP || *signal == SIGQUIT)
        return Error(Code::kCanceled, format("signal {} came before the command had started", *signal));
    }
    auto answer = BELLJAR_TRY(channel.receive(milliseconds(0)));
    if (answer) return *std::move(answer);
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    if (left <= milliseconds(0))
      return Error(Code::kDeadlineExceeded, "the sandbox's keeper does not answer").next("`belljar kill` ends it all the same");
    std::array<pollfd, 2> set = {{{signals.fd(), POLLIN, 0}, {channel.fd(), POLLIN, 0}}};
    (void)::poll(set.data(), set.size(), static_cast<int>(left.count()));
  }
}

void note_lost(FrontEnd& end, const char* name, const Pump* pump) {
  if (pump == nullptr) return;
  end.output_bytes += pump->total();
  const int error = pump->sink_errno();
  if (error != 0 && error != EPIPE && error != EIO)
    end.notes.push_back(format("cannot write {}: {}; output of the command was lost", name, std::strerror(error)));
}

}  // namespace

Result<FrontEnd> run_front(keeper::Channel& channel, keeper::Json call, const front::StdioOptions& options, OverCap over_cap) {
  front::Signals signals = BELLJAR_TRY(front::Signals::open(front::Signals::Take::kForwarded));
  front::Stdio stdio = BELLJAR_TRY(front::Stdio::open(options));
  front::RawTerminal terminal(stdio.pty() && options.output == front::OutputTo::kInherit ? options.host[0] : -1);
  BELLJAR_CHECK(send_call(channel, std::move(call), stdio));
  auto started = BELLJAR_TRY(await_start(channel, signals));
  if (const auto error = started.message.find("error"); error != started.message.end()) return keeper::error_from(*error);
  stdio.close_command_ends();
  if (stdio.pty() && !started.fds.empty()) stdio.attach_pty(std::move(started.fds[0]));
  FrontEnd end;
  const milliseconds kill_grace{started.message.value("kill_grace_ms", Limits{}.kill_grace.count())};
  auto result = Front(channel, stdio, signals, terminal, over_cap, kill_grace).run();
  terminal.restore();
  end.result = BELLJAR_TRY(std::move(result));
  note_lost(end, "stdout", stdio.output());
  note_lost(end, "stderr", stdio.error());
  if (stdio.output() != nullptr && stdio.output()->over_cap()) end.over_limit = "stdout";
  else if (stdio.error() != nullptr && stdio.error()->over_cap()) end.over_limit = "stderr";
  end.out = stdio.take_out();
  end.err = stdio.take_err();
  // The connection closes when the log has it.
  if (channel.send({{"output_bytes", end.output_bytes}}, {}, kGoodbye)) (void)channel.receive(kGoodbye);
  return end;
}

}  // namespace belljar::cli
