// Raw mode of the caller's terminal while a pty of the sandbox is in use, so that every key, ^C
// included, reaches the line discipline inside. The modes belong to the terminal and outlive us, so
// each way out has to put them back: the destructor, a stop (Front::suspend), and a crash. For the
// last a handler is installed for signals that end the process and do not arrive through Signals;
// it calls only tcsetattr(3) and raise(3), which signal-safety(7) allows. SIGKILL leaves the
// terminal raw, and nothing can be done about that here.
//
// Raw mode is entered only from the foreground: a background job that changed the modes would
// change them under the program that is reading. The loop asks again (kForegroundCheck) until `fg`
// made us the foreground group. The saved modes are read anew at each entry, because the shell may
// have changed them while we were stopped.
#include "front/terminal.h"

#include <signal.h>
#include <unistd.h>

#include "front/pump.h"

namespace belljar::front {
namespace {

// Read by the crash handler only: a handler has no other way to reach an object.
struct {
  volatile sig_atomic_t armed = 0;
  int fd = -1;
  termios saved{};
} emergency;

// Signals that end a process and do not arrive through Signals. tcsetattr(3) is async-signal-safe, signal-safety(7).
constexpr int kFatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGTRAP, SIGALRM, SIGXCPU, SIGVTALRM, SIGPROF};

extern "C" void restore_and_die(int signal) {
  if (emergency.armed != 0) tcsetattr(emergency.fd, TCSANOW, &emergency.saved);
  // SA_RESETHAND put the default action back.
  raise(signal);
}

void arm(int fd, const termios& saved) noexcept {
  emergency.fd = fd;
  emergency.saved = saved;
  emergency.armed = 1;
  struct sigaction action{};
  action.sa_handler = restore_and_die;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  for (const int signal : kFatal) {
    struct sigaction old{};
    // A host program's own crash handler stays.
    if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler == SIG_DFL) sigaction(signal, &action, nullptr);
  }
}

void disarm() noexcept {
  emergency.armed = 0;
  for (const int signal : kFatal) {
    struct sigaction old{};
    if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler == restore_and_die) ::signal(signal, SIG_DFL);
  }
}

}  // namespace

std::optional<winsize> window_size(int terminal) noexcept {
  winsize size{};
  if (ioctl(terminal, TIOCGWINSZ, &size) != 0) return std::nullopt;
  return size;
}

RawTerminal::RawTerminal(int terminal) noexcept : fd_(terminal), valid_(terminal >= 0 && tcgetattr(terminal, &saved_) == 0) {}

RawTerminal::~RawTerminal() { restore(); }

void RawTerminal::enter() noexcept {
  if (!valid_ || raw_ || !in_foreground(fd_)) return;
  // Read anew: while we were stopped the shell or the user may have changed it.
  if (tcgetattr(fd_, &saved_) != 0) return;
  termios raw = saved_;
  cfmakeraw(&raw);
  arm(fd_, saved_);
  raw_ = tcsetattr(fd_, TCSADRAIN, &raw) == 0;
}

void RawTerminal::restore() noexcept {
  if (!raw_) return;
  raw_ = false;
  // SIGTTOU is blocked by Signals, so this works from the background, too.
  tcsetattr(fd_, TCSADRAIN, &saved_);
  disarm();
}

}  // namespace belljar::front
