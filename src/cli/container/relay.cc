// A process of a Sandbox joined to our own streams, terminal and signals until it ends.
//
// A Process has callbacks and blocking calls where a front has descriptors: pipes between the two, or for a
// terminal a pair of sockets. Two threads serve their far ends. One waits for the process (wait), and one
// carries input to it (feed), since a command that does not read would otherwise hold up its own signals.
// Output comes by callback and is written to the pipe by whoever calls.
//
// The front's loop hears of the end by a wake descriptor, joins both threads, and only then closes the far
// ends: bytes that are still in the pipes are passed on before the front ends.
//
// If our reader has gone away, the command is ended and its result reads as killed by SIGPIPE, as it would be
// if the pipe were its own. Any other failure to write our output is an error, because the caller would take
// a cut output for all of it.
#include "cli/container/relay.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <utility>

#include "base/unique_fd.h"
#include "base/wake.h"
#include "base/write_all.h"
#include "belljar/cancel.h"
#include "belljar/command.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/process.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "front/front.h"
#include "front/pump.h"
#include "front/signals.h"
#include "front/stdio.h"
#include "front/terminal.h"

namespace belljar::cli {
namespace {

void killed_by_pipe(ExecResult& result) {
  result.reason = Reason::kSignalled;
  result.signal = SIGPIPE;
  result.exit_code = 128 + SIGPIPE;
  result.message = "killed by SIGPIPE";
}

// Why our output could not be written; `wrote`: what a write for the command failed of, 0: none did.
int failed_of(front::Stdio& stdio, int wrote) {
  for (const front::Pump* pump : {stdio.output(), stdio.error()}) {
    if (pump != nullptr && pump->sink_errno() != 0 && pump->sink_errno() != EPIPE) return pump->sink_errno();
  }
  return wrote;
}

// The far ends of the command's streams.
struct CommandStreams {
  int in = -1, out = -1, err = -1;  // -1: not joined
  UniqueFd terminal;                // all three, where it has one
};

Result<CommandStreams> far_ends(front::Stdio& stdio, bool passes_output) {
  CommandStreams far{stdio.command_fd(0), stdio.command_fd(1), stdio.command_fd(2), {}};
  if (stdio.pty()) {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
      return Error(Code::kResourceExhausted, "cannot join the command's terminal to ours")
          .sys(errno, "socketpair")
          .next("raise the limit of open files (`ulimit -n`)");
    far.terminal = UniqueFd(pair[1]);
    stdio.attach_pty(UniqueFd(pair[0]));
    far.in = far.out = pair[1];
  }
  if (!passes_output) far.out = far.err = -1;
  return far;
}

class Relay final : public front::CommandControl {
 public:
  Relay(Process& process, front::Stdio& stdio, front::Front& front, CommandStreams far)
      : process_(process), stdio_(stdio), front_(front), far_(std::move(far)), waiter_([this] { wait(); }), feeder_([this] {
          feed();
        }) {}

  Result<std::optional<ExecResult>> run() {
    front_.run(*this);
    return std::move(result_);
  }

  // The sandbox runs on while we are stopped: its processes are no job of our shell.
  void pass_on(int signal) override {
    if (signal != SIGSTOP && signal != SIGCONT && signal != SIGWINCH) (void)process_.signal(signal);
  }
  void tell_to_end(int signal) override {
    if (signal != SIGTERM) pass_on(signal);
    (void)process_.terminate();
  }
  void kill() override { (void)process_.kill(); }
  void resize(const winsize& size) override { (void)process_.resize(size.ws_row, size.ws_col); }
  std::size_t add_pollfds(pollfd* into) override {
    *into = {ended_.get(), POLLIN, 0};
    return 1;
  }
  void handle(std::span<const pollfd> fds, bool /*moved*/) override {
    if (fds.empty() || fds[0].revents == 0) return;
    waiter_.join();
    feeder_.join();
    stdio_.close_command_ends();
    far_.terminal.reset();
    front_.ended();
  }

 private:
  void wait() {
    result_ = process_.wait();
    ended_.ring();
  }

  // A command that does not read must not keep its signals waiting.
  void feed() {
    std::array<char, 64U << 10> buffer;
    while (far_.in >= 0) {
      std::array<pollfd, 2> set = {{{ended_.get(), POLLIN, 0}, {far_.in, POLLIN, 0}}};
      if (::poll(set.data(), set.size(), -1) < 0 && errno != EINTR) return;
      if (set[0].revents != 0) return;
      if (set[1].revents == 0) continue;
      const ssize_t got = ::read(far_.in, buffer.data(), buffer.size());
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (got <= 0) return (void)process_.close_stdin();
      if (!process_.write_stdin({buffer.data(), static_cast<std::size_t>(got)}, std::chrono::milliseconds::max())) return;
    }
  }

  Process& process_;
  front::Stdio& stdio_;
  front::Front& front_;
  CommandStreams far_;
  Wake ended_;
  Result<std::optional<ExecResult>> result_ = std::optional<ExecResult>();
  std::thread waiter_, feeder_;
};

}  // namespace

Result<RelayResult> relay(Sandbox& sandbox, const Command& command, SpawnOptions options, front::StdioOptions streams,
                          std::chrono::milliseconds kill_grace, front::Signals& signals) {
  const bool captures = streams.output == front::OutputTo::kCapture;
  streams.watch = true;
  if (captures) streams.output = front::OutputTo::kInherit, streams.host[1] = streams.host[2] = -1;
  front::Stdio stdio = BELLJAR_TRY(front::Stdio::open(streams));
  CommandStreams far = BELLJAR_TRY(far_ends(stdio, !captures));
  options.cancel = BELLJAR_TRY(CancelToken::create());
  // Output that nobody takes ends the command, as a write would end it where its pipe is ours.
  std::atomic<int> wrote{0};
  const auto to = [&wrote, end = options.cancel](int fd) -> OutputCallback {
    return [&wrote, end, fd](std::string_view bytes) {
      if (wrote.load() == 0 && !write_all(fd, bytes)) wrote.store(errno), end.cancel();
    };
  };
  if (far.out >= 0) options.on_stdout = to(far.out);
  if (far.err >= 0) options.on_stderr = to(far.err);
  if (stdio.pty()) {
    const auto size = front::window_size(0);
    options.terminal = size ? TerminalSize{size->ws_row, size->ws_col} : TerminalSize{};
  } else if (far.in >= 0) {
    options.input = SpawnInput::kPipe;
  }
  const auto process = BELLJAR_TRY(sandbox.spawn(command, options));
  front::RawTerminal terminal(stdio.pty() ? streams.host[0] : -1);
  front::Front front(stdio, &signals, &terminal, kill_grace);
  auto result = BELLJAR_TRY(Relay(*process, stdio, front, std::move(far)).run());
  terminal.restore();
  if (std::string why = front.killed_because(); result->reason == Reason::kSignalled && result->signal == SIGKILL && !why.empty())
    result->message = std::move(why);
  const int failed = failed_of(stdio, wrote.load());
  if (failed == EPIPE) killed_by_pipe(*result);
  else if (failed != 0)
    return Error(Code::kUnavailable, "cannot pass on the command's output, so it was ended")
        .sys(failed, "write")
        .next("run it again with its output somewhere else");
  const std::uint64_t dropped = captures ? result->out.omitted + result->err.omitted : front.dropped();
  return RelayResult{*std::move(result), dropped};
}

}  // namespace belljar::cli
