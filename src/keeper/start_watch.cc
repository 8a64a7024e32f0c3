#include "keeper/start_watch.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <exception>
#include <utility>

#include "belljar/error.h"

namespace belljar::keeper {

Result<std::unique_ptr<StartWatch>> StartWatch::begin(int channel) {
  const Error failed = Error(Code::kResourceExhausted, "cannot watch over the start").next("raise `ulimit -n` and `ulimit -u`");
  sigset_t taken;
  sigemptyset(&taken);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&taken, signal);
  UniqueFd signals(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.valid()) return Error(failed).sys(errno, "signalfd");
  Wake over;
  if (!over.valid()) return Error(failed).sys(errno, "eventfd");
  CancelToken token = BELLJAR_TRY(CancelToken::create());
  try {
    return std::unique_ptr<StartWatch>(new StartWatch(channel, std::move(signals), std::move(over), std::move(token)));
  } catch (const std::exception& thread) {
    return Error(failed).reason(thread.what());
  }
}

StartWatch::StartWatch(int channel, UniqueFd signals, Wake over, CancelToken token)
    : channel_(channel), signals_(std::move(signals)), over_(std::move(over)), token_(std::move(token)), thread_([this] {
        watch();
      }) {}

StartWatch::~StartWatch() {
  over_.ring();
  thread_.join();
}

void StartWatch::watch() const {
  std::array<pollfd, 3> set = {{{over_.get(), POLLIN, 0}, {channel_, POLLIN | POLLRDHUP, 0}, {signals_.get(), POLLIN, 0}}};
  while (::poll(set.data(), set.size(), -1) < 0 && errno == EINTR) {
  }
  if (set[0].revents == 0) token_.cancel();
}

}  // namespace belljar::keeper
