// Signals as descriptors, signalfd(2). A handler could do almost nothing safely and would race with
// the poll; a blocked signal simply stays pending until the loop reads it. There are two
// descriptors over the same pending signals: fd() is read by the loop, and ending_fd() is only
// polled, by a start that has no loop yet and is to be given up when INT, TERM, HUP or QUIT comes.
// A signal that was ignored at our start is left out, because signalfd would turn what nohup(1)
// protects from into a signal that is passed on.
//
// SIGPIPE, SIGXFSZ, SIGTTOU and SIGTTIN are blocked, too, but nobody reads them: the call that
// caused them fails with an errno, which the pumps handle. To ignore them would have the same
// effect here, but ignored signals are inherited through execve(2).
//
// The destructor takes pending signals out before it restores the mask. They were meant for a
// command that has ended, and without this they would end the caller's program at the moment the
// mask opens.
#include "front/signals.h"

#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <iterator>
#include <utility>

namespace belljar::front {
namespace {

constexpr int kEnding[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr int kOthers[] = {SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT};
// Blocked, not ignored: ignoring would be inherited by the command, and blocked these calls fail with EPIPE, EFBIG or EIO.
constexpr int kAsErrno[] = {SIGPIPE, SIGXFSZ, SIGTTOU, SIGTTIN};

bool is_passed_on(int signal) noexcept {
  return std::ranges::find(kEnding, signal) != std::end(kEnding) || std::ranges::find(kOthers, signal) != std::end(kOthers);
}

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

Result<Signals> Signals::open_remote(RemoteEnd& end) {
  Signals signals = BELLJAR_TRY(open(Mode::kNone));
  signals.remote_ = &end;
  return signals;
}

void Signals::stop() noexcept {
  if (remote_ != nullptr) remote_->stop();
  else ::kill(::getpid(), SIGSTOP);
}

Signals::Signals(Signals&& other) noexcept
    : fd_(std::move(other.fd_)),
      ending_fd_(std::move(other.ending_fd_)),
      remote_(other.remote_),
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
  if (remote_ != nullptr) {
    const auto signal = remote_->next();
    return signal && is_passed_on(*signal) ? signal : std::nullopt;
  }
  signalfd_siginfo info{};
  if (!fd_.valid() || read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace belljar::front
