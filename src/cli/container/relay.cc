#include "cli/container/relay.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/unique_fd.h"
#include "base/wake.h"
#include "belljar/cancel.h"
#include "belljar/command.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/process.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "command/capture.h"
#include "runtime/signals.h"
#include "runtime/terminal.h"
#include "runtime/told_to_end.h"

namespace belljar::cli {
namespace {

// 0, or the errno: nobody reads it (EPIPE), or the disk is full.
int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EAGAIN) {
      pollfd wait{fd, POLLOUT, 0};
      ::poll(&wait, 1, -1);
    } else if (wrote < 0 && errno != EINTR) {
      return errno;
    } else if (wrote > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(wrote));
    }
  }
  return 0;
}

// One of our own streams: as much of the command's as the cap lets through.
class Outlet {
 public:
  Outlet(int fd, std::optional<std::uint64_t> cap) : fd_(fd), head_(cap) {}
  // 0, or the errno of a write.
  int take(std::string_view bytes) {
    const std::string joined = held_.empty() ? std::string() : held_ + std::string(bytes);
    const std::string_view text = held_.empty() ? bytes : joined;
    const std::size_t size = head_.pass(text);
    const std::string held(text.substr(size, head_.held()));
    const int failed = write_all(fd_, text.substr(0, size));
    held_ = held;
    return failed;
  }
  // The stream has ended.
  int end() { return write_all(fd_, std::exchange(held_, {})); }
  std::uint64_t dropped() const noexcept { return head_.dropped(); }

 private:
  const int fd_;
  command::Head head_;
  std::string held_;
};

// Output that nobody takes ends the command, as a write would end it where its pipe is ours. Callbacks of both streams come here,
// one at a time or not.
class Outlets {
 public:
  Outlets(CancelToken end, std::optional<std::uint64_t> cap)
      : end_(std::move(end)), out_(STDOUT_FILENO, cap), err_(STDERR_FILENO, cap) {}
  OutputCallback to_stdout() { return to(out_); }
  OutputCallback to_stderr() { return to(err_); }
  int failed() const noexcept { return failed_.load(); }
  // Once the command has ended.
  void end() {
    for (Outlet* each : {&out_, &err_}) {
      if (failed_.load() == 0) failed_.store(each->end());
    }
  }
  std::uint64_t dropped() const noexcept { return out_.dropped() + err_.dropped(); }

 private:
  OutputCallback to(Outlet& stream) {
    return [&stream, this](std::string_view bytes) {
      if (failed_.load() != 0) return;
      const int failed = stream.take(bytes);
      if (failed == 0) return;
      failed_.store(failed);
      end_.cancel();
    };
  }

  CancelToken end_;
  Outlet out_, err_;
  std::atomic<int> failed_{0};
};

void killed_by_pipe(ExecResult& result) {
  result.reason = Reason::kSignalled;
  result.signal = SIGPIPE;
  result.exit_code = 128 + SIGPIPE;
  result.message = "killed by SIGPIPE";
}

class Relay {
 public:
  Relay(Process& process, runtime::Signals& signals, bool input, bool terminal, std::chrono::milliseconds kill_grace)
      : process_(process), signals_(signals), raw_(terminal ? 0 : -1), told_(kill_grace), input_(input), terminal_(terminal) {
    if (terminal_) raw_.enter();
  }

  Result<std::optional<ExecResult>> run() {
    Result<std::optional<ExecResult>> result = std::optional<ExecResult>();
    std::thread waiter([&] {
      result = process_.wait();
      ended_.ring();
    });
    // Input has a thread of its own: a command that does not read must not keep its signals waiting.
    std::thread feeder([&] { feed(); });
    while (follow()) {
    }
    waiter.join();
    feeder.join();
    return result;
  }

 private:
  bool follow() {
    std::array<pollfd, 2> set = {{{ended_.get(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}}};
    if (::poll(set.data(), set.size(), patience()) < 0) return true;
    if (set[0].revents != 0) return false;
    if (patience() == 0) kill_once();
    while (const auto number = signals_.next()) pass_on(*number);
    return true;
  }

  // Until it is to be killed; -1: it is not.
  int patience() const {
    if (!told_.kill_at() || killed_) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*told_.kill_at() - std::chrono::steady_clock::now());
    return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, INT_MAX));
  }

  void kill_once() {
    if (!std::exchange(killed_, true)) (void)process_.signal(SIGKILL);
  }

  void pass_on(int number) {
    if (number == SIGTERM && told_.again(std::chrono::steady_clock::now())) return kill_once();
    if (number == SIGWINCH) {
      if (const auto size = runtime::window_size(0); terminal_ && size) (void)process_.resize(size->ws_row, size->ws_col);
    } else if (number == SIGTSTP) {
      ::raise(SIGSTOP);  // the container runs on: its processes are no job of our shell
    } else if (number != SIGCONT) {
      (void)process_.signal(number);
    } else if (terminal_) {
      raw_.enter();
    }
  }

  void feed() {
    std::array<char, 64U << 10> buffer;
    while (input_) {
      std::array<pollfd, 2> set = {{{ended_.get(), POLLIN, 0}, {0, POLLIN, 0}}};
      if (::poll(set.data(), set.size(), -1) < 0 && errno != EINTR) return;
      if (set[0].revents != 0) return;
      if (set[1].revents == 0) continue;
      const ssize_t got = ::read(0, buffer.data(), buffer.size());
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (got <= 0) {
        (void)process_.close_stdin();
        return;
      }
      if (!process_.write_stdin({buffer.data(), static_cast<std::size_t>(got)}, std::chrono::milliseconds::max())) return;
    }
  }

  Process& process_;
  runtime::Signals& signals_;
  Wake ended_;
  runtime::RawTerminal raw_;
  runtime::ToldToEnd told_;
  bool input_, terminal_, killed_ = false;
};

}  // namespace

Result<Relayed> relay(Sandbox& sandbox, const Command& command, SpawnOptions options, const RelayOptions& how,
                      runtime::Signals& signals) {
  options.cancel = BELLJAR_TRY(CancelToken::create());
  Outlets outlets(options.cancel, how.cap);
  if (!how.capture) {
    options.on_stdout = outlets.to_stdout();
    options.on_stderr = outlets.to_stderr();
  }
  if (how.terminal) {
    const auto size = runtime::window_size(0);
    options.terminal = size ? TerminalSize{size->ws_row, size->ws_col} : TerminalSize{};
  } else if (how.input) {
    options.input = SpawnInput::kPipe;
  }
  const auto process = BELLJAR_TRY(sandbox.spawn(command, options));
  auto result = BELLJAR_TRY(Relay(*process, signals, how.input || how.terminal, how.terminal, how.kill_grace).run());
  outlets.end();
  if (outlets.failed() == EPIPE) killed_by_pipe(*result);
  else if (outlets.failed() != 0)
    return Error(Code::kUnavailable, "cannot pass on the command's output, so it was ended")
        .sys(outlets.failed(), "write")
        .next("run it again with its output somewhere else");
  const std::uint64_t dropped = how.capture ? result->out.omitted + result->err.omitted : outlets.dropped();
  return Relayed{*std::move(result), dropped};
}

}  // namespace belljar::cli
