#include "front/signals.h"

#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <utility>

namespace belljar::front {
namespace {

constexpr int kEnding[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr int kOthers[] = {SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT};
// Blocked, not ignored: ignoring would be inherited by the command, and blocked these calls fail with EPIPE, EFBIG or EIO.
constexpr int kAsErrno[] = {SIGPIPE, SIGXFSZ, SIGTTOU, SIGTTIN};

bool is_ignored(int signal) noexcept {
  struct sigaction action{};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

Result<Signals> Signals::open(Mode take) {
  Signals signals;
  sigset_t set, blocked;
  sigemptyset(&set);
  sigemptyset(&blocked);
  for (const int signal : kAsErrno) sigaddset(&blocked, signal);
  if (take == Mode::kForwarded) {
    const auto add = [&](int signal) {
      if (is_ignored(signal)) return;
      sigaddset(&set, signal);
      sigaddset(&blocked, signal);
    };
    for (const int signal : kEnding) add(signal);
    signals.ending_fd_ = UniqueFd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    for (const int signal : kOthers) add(signal);
    signals.fd_ = UniqueFd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals.fd_.valid() || !signals.ending_fd_.valid()) {
      signals.active_ = false;
      return Error(Code::kResourceExhausted, "cannot wait for signals")
          .sys(errno, "signalfd")
          .next("raise the limit of open files (`ulimit -n`)");
    }
  }
  pthread_sigmask(SIG_BLOCK, &blocked, &signals.old_);
  return signals;
}

Signals::Signals(Signals&& other) noexcept
    : fd_(std::move(other.fd_)),
      ending_fd_(std::move(other.ending_fd_)),
      old_(other.old_),
      active_(std::exchange(other.active_, false)) {}

Signals::~Signals() {
  if (!active_) return;
  // What our own writes caused must not strike once it is unblocked again.
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kAsErrno) {
    if (sigismember(&old_, signal) == 0) sigaddset(&set, signal);
  }
  // Neither must a ^C that was typed once too often at a command that has ended, nor a TERM, which timeout(1) sends twice.
  for (const int signal : {SIGINT, SIGTERM}) {
    if (fd_.valid() && sigismember(&old_, signal) == 0) sigaddset(&set, signal);
  }
  const timespec now{};
  while (sigtimedwait(&set, nullptr, &now) > 0) {
  }
  pthread_sigmask(SIG_SETMASK, &old_, nullptr);
}

std::optional<int> Signals::next() noexcept {
  signalfd_siginfo info{};
  if (!fd_.valid() || read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace belljar::front
