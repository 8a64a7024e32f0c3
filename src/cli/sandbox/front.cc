// The front of one command in a kept sandbox: streams, signals and terminal here, while the keeper waits for
// the end.
//
// The keeper answers twice over one connection, when the command has started and when it has ended. Until the
// first answer a signal that would have ended us simply ends us: the connection closes, and the keeper ends
// the command. After it signals are passed on as messages, and the loop of ../front decides what they mean
// for us.
//
// With an output limit that kills, it is we who notice (the streams are ours) and the keeper who acts (the
// processes are its own). So the limit is one more message, sent once.
//
// Last, the keeper is told how many bytes of output there were, for its log. It closes the connection when
// that is written, which is waited for, so that `belljar logs` right after us has it.
#include "cli/sandbox/front.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "front/front.h"
#include "front/signals.h"
#include "front/stdio.h"
#include "front/terminal.h"
#include "keeper/wire.h"

namespace belljar::cli {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kStart{60'000}, kGoodbye{2000};

// The command, as its keeper tells of it.
class ExecCommand final : public front::CommandControl {
 public:
  ExecCommand(keeper::Channel& channel, front::Front& front, OverCap over_cap)
      : channel_(channel), front_(front), over_cap_(over_cap) {}

  Result<std::string> run() {
    receive_result();  // it may have come together with the start
    front_.run(*this);
    if (failed_) return *std::move(failed_);
    return std::move(result_);
  }

  // A keeper that is gone is seen when it is read from.
  void pass_on(int signal) override { (void)channel_.send({{"signal", signal}}); }
  void tell_to_end(int signal) override {
    if (signal != SIGTERM) pass_on(signal);
    (void)channel_.send({{"terminate", true}});
  }
  void kill() override { (void)channel_.send({{"kill", front_.killed_because()}}); }
  std::size_t add_pollfds(pollfd* into) override {
    *into = {channel_.fd(), POLLIN, 0};
    return 1;
  }
  void handle(std::span<const pollfd> fds, bool /*moved*/) override {
    check_output_limit();
    if (!fds.empty() && fds[0].revents != 0) receive_result();
  }

 private:
  void receive_result() {
    auto message = channel_.receive(milliseconds(0));
    if (!message) return fail(message.error());
    if (!*message) return;
    const keeper::Json& told = (*message)->message;
    if (const auto error = told.find("error"); error != told.end()) return fail(keeper::error_from(*error));
    result_ = told.at("result").get<std::string>();
    front_.ended();
  }

  void fail(Error error) {
    failed_ = std::move(error);
    front_.give_up();
  }

  // The keeper ends the whole tree of the command, and tells why in its result.
  void check_output_limit() {
    const char* const stream = front_.over_cap();
    if (over_cap_ != OverCap::kKill || told_limit_ || front_.has_ended() || stream == nullptr) return;
    told_limit_ = true;
    (void)channel_.send({{"over_limit", stream}});
  }

  keeper::Channel& channel_;
  front::Front& front_;
  OverCap over_cap_;
  bool told_limit_ = false;
  std::string result_;
  std::optional<Error> failed_;
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

}  // namespace

Result<FrontResult> run_front(keeper::Channel& channel, keeper::Json call, const front::StdioOptions& options, OverCap over_cap) {
  front::Signals signals = BELLJAR_TRY(front::Signals::open(front::Signals::Mode::kForwarded));
  front::Stdio stdio = BELLJAR_TRY(front::Stdio::open(options));
  front::RawTerminal terminal(stdio.pty() && options.output == front::OutputTo::kInherit ? options.host[0] : -1);
  BELLJAR_CHECK(send_call(channel, std::move(call), stdio));
  auto started = BELLJAR_TRY(await_start(channel, signals));
  if (const auto error = started.message.find("error"); error != started.message.end()) return keeper::error_from(*error);
  stdio.close_command_ends();
  if (stdio.pty() && !started.fds.empty()) stdio.attach_pty(std::move(started.fds[0]));
  FrontResult end;
  const milliseconds kill_grace{started.message.value("kill_grace_ms", Limits{}.kill_grace.count())};
  front::Front front(stdio, &signals, &terminal, kill_grace);
  auto result = ExecCommand(channel, front, over_cap).run();
  terminal.restore();
  end.result = BELLJAR_TRY(std::move(result));
  end.output_bytes = front.total();
  end.notes = front.lost();
  if (const char* const stream = front.over_cap()) end.over_limit = stream;
  end.out = stdio.take_out();
  end.err = stdio.take_err();
  // The connection closes when the log has it.
  if (channel.send({{"output_bytes", end.output_bytes}}, {}, kGoodbye)) (void)channel.receive(kGoodbye);
  return end;
}

}  // namespace belljar::cli
