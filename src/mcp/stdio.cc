// The transport for a client that started us: JSON messages, one a line, on stdin and stdout.
//
// A session speaks from many threads, so a writer takes whole lines under a mutex. The other end may stop
// reading, and then write(2) blocks for as long as it likes, on a descriptor that is blocking and perhaps
// shared with others, so that it must not be made non-blocking. Therefore the writer waits with poll(2) for
// room, writes no more than a pipe has room for then, and gives up when told (given_up_), without which
// close() could wait for a thread that waits for a dead client.
//
// The end comes in three ways: stdin ends, a signal arrives, or the output's other end is closed, which
// poll(2) reports although nothing is written. Only after the first do running calls get a second to finish,
// because a client that pipes its requests in and closes stdin is still reading.
#include "mcp/stdio.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/unique_fd.h"
#include "base/wake.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "mcp/lines.h"
#include "mcp/session.h"

namespace belljar::mcp {
namespace {

constexpr std::chrono::milliseconds kLastCalls = std::chrono::seconds(1);

// Writes whole lines from any thread. A client that reads nothing holds up who writes, until the writing is given up.
class LineWriter {
 public:
  LineWriter(UniqueFd output, Wake given_up) : output_(std::move(output)), given_up_(std::move(given_up)) {}

  void write(std::string line) {
    line += '\n';
    const std::lock_guard lock(mutex_);
    for (std::string_view rest = line; !rest.empty() && !broken_.load();) {
      pollfd wait[] = {{output_.get(), POLLOUT, 0}, {given_up_.get(), POLLIN, 0}};
      if (::poll(wait, 2, -1) < 0 && errno == EINTR) continue;
      if (wait[1].revents != 0) break;
      // Never more than a pipe has room for when poll(2) calls it writable: the descriptor is blocking, and perhaps shared.
      constexpr std::size_t kPiece = 4096;
      const ssize_t written = ::write(output_.get(), rest.data(), std::min(rest.size(), kPiece));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) broken_ = true;
      else rest.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  void give_up() noexcept { given_up_.ring(); }
  int fd() const noexcept { return output_.get(); }

 private:
  const UniqueFd output_;
  const Wake given_up_;
  std::mutex mutex_;  // one line at a time
  std::atomic<bool> broken_{false};
};

enum class End { kGoOn, kInputEnded, kClientGone };

End read_some(int input, LineReader& lines) {
  char buffer[65536];
  const ssize_t count = ::read(input, buffer, sizeof buffer);
  if (count < 0) return errno == EINTR || errno == EAGAIN ? End::kGoOn : End::kClientGone;
  if (count > 0) lines.feed({buffer, static_cast<std::size_t>(count)});
  else lines.finish();
  return count > 0 ? End::kGoOn : End::kInputEnded;
}

End serve(int input, int output, int signals, LineReader& lines) {
  for (;;) {
    pollfd wait[] = {{input, POLLIN, 0}, {signals, POLLIN, 0}, {output, 0, 0}};
    if (::poll(wait, 3, -1) < 0 && errno == EINTR) continue;
    if (wait[1].revents != 0 || (wait[2].revents & (POLLERR | POLLNVAL)) != 0) return End::kClientGone;
    if (wait[0].revents == 0) continue;
    if (const End end = read_some(input, lines); end != End::kGoOn) return end;
  }
}

}  // namespace

Result<void> serve_stdio(SessionOptions options, UniqueFd input, UniqueFd output) {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&wanted, number);
  const UniqueFd signals(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  Wake given_up;
  if (!signals.valid() || !given_up.valid())
    return Error(Code::kResourceExhausted, "cannot serve").sys(errno, signals.valid() ? "eventfd" : "signalfd");
  LineWriter writer(std::move(output), std::move(given_up));
  Session session(std::move(options), [&writer](Outgoing said) {
    if (!said.line.empty()) writer.write(std::move(said.line));
  });
  LineReader lines(
      kLongestLine, [&](std::string_view line) { session.receive(line); }, [&] { session.line_too_long(kLongestLine); });
  if (serve(input.get(), writer.fd(), signals.get(), lines) == End::kInputEnded) session.wait_idle(kLastCalls);
  writer.give_up();
  session.close();
  return {};
}

}  // namespace belljar::mcp
