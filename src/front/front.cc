// The loop of a front. Each turn first does what is due by the clock, then polls, then moves bytes,
// and only then lets the command look at its own descriptors. The order of the last two matters:
// the end of a command is found in CommandControl::handle(), and by then the pumps have read what
// poll reported in the same turn.
//
// The end comes in two steps. ended() says that nothing of the command writes any more: no input is
// relayed from then on, and input that came from a file and was not consumed goes back to it. The
// outputs are still drained, because a pipe keeps bytes after its writers died. The draining does
// not wait for EOF: a process that escaped, or another process of the same sandbox, may hold the
// write end open for ever. It stops when a poll with no timeout finds nothing and no pump holds
// bytes, or when more than kDrainAtMost came after the end, which is more than a pipe can have
// held, or at the deadline that ended() was given.
//
// Signals arrive as readable descriptors (signals.h), so none interrupts a turn. A stop needs two
// cases. When the front is told to stop, it sends SIGSTOP to the command, because the kernel drops
// SIGTSTP for an orphaned process group. When the job in the command's own terminal stopped, the
// front stops its own group by SIGTSTP: then the caller's shell sees a stopped job, and where no
// shell could continue it the kernel drops the signal and the command is continued at once. See
// signal(7) and POSIX.1-2017, XSH 2.4.3.
#include "front/front.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/format.h"

namespace belljar::front {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A second ^C within this time means it, or within the grace, when that is longer.
constexpr milliseconds kImpatient{2000};
// A background job's terminal is looked at this often, to notice `fg`.
constexpr milliseconds kForegroundCheck{250};
// Larger than any pipe we make (64 KiB) and any the command can grow it to without privilege (pipe-max-size, 1 MiB): who still
// writes then escaped, or is another process of the sandbox, and has no claim on us.
constexpr std::uint64_t kDrainAtMost = 2 << 20;

int poll_until(std::span<pollfd> set, std::optional<Time> deadline, Time now) {
  timespec wait{};
  if (deadline && *deadline > now) {
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(*deadline - now).count();
    wait = {static_cast<time_t>(left / 1'000'000'000), static_cast<long>(left % 1'000'000'000)};
  }
  return ::ppoll(set.data(), set.size(), deadline ? &wait : nullptr, nullptr);
}

}  // namespace

void Front::run(CommandControl& command) {
  while (!finished()) turn(command);
}

void Front::turn(CommandControl& command) {
  const Time now = Clock::now();
  if (!ended_) {
    if (wants_raw()) terminal_->enter();
    if (!killed_ && told_.kill_at() && now >= *told_.kill_at()) killed_ = true, command.kill();
    if (!ended_) command.on_time(now);
  }
  if (ended_ && drain_until_ && now >= *drain_until_) drained_ = true;

  std::array<pollfd, 1 + (3 * 2) + CommandControl::kMostFds> set{};
  std::size_t count = 0;
  if (signals_ != nullptr) set[count++] = {signals_->fd(), POLLIN, 0};
  Pump* const pumps[] = {stdio_.input(), stdio_.output(), stdio_.error()};
  std::size_t at[4];
  for (std::size_t n = 0; n < 3; ++n) {
    at[n] = count;
    if (pumps[n] != nullptr && (n > 0 || !ended_)) count += static_cast<std::size_t>(pumps[n]->add_pollfds(&set[count]));
  }
  at[3] = count;
  if (!ended_) count += command.add_pollfds(&set[count]);

  const int ready = poll_until(std::span(set).first(count), deadline(command, now), now);
  if (ready < 0) return;
  if (ended_ && ready == 0 && !pending()) drained_ = true;
  if (signals_ != nullptr && set[0].revents != 0) take_signals(command);
  bool moved = false;
  for (std::size_t n = 0; n < 3; ++n) {
    if (at[n + 1] > at[n]) moved |= pumps[n]->handle(&set[at[n]], static_cast<int>(at[n + 1] - at[n]));
  }
  command.handle(std::span(set).subspan(at[3], count - at[3]), moved);
}

std::optional<Time> Front::deadline(const CommandControl& command, Time now) const {
  // Nobody writes any more: what is there is there now. Only a slow reader of ours is waited for.
  if (ended_) return pending() ? drain_until_ : now;
  std::optional<Time> next = command.next();
  const auto consider = [&](Time at) { next = next ? std::min(*next, at) : at; };
  if (!killed_ && told_.kill_at()) consider(*told_.kill_at());
  if ((stdio_.input() != nullptr && stdio_.input()->waits_for_foreground()) || wants_raw()) consider(now + kForegroundCheck);
  return next;
}

void Front::ended(std::optional<milliseconds> drain_at_most) {
  if (ended_) return;
  ended_ = true;
  if (stdio_.output() != nullptr) read_at_end_[0] = stdio_.output()->total();
  if (stdio_.error() != nullptr) read_at_end_[1] = stdio_.error()->total();
  if (stdio_.input() != nullptr) stdio_.input()->give_back();
  if (drain_at_most) drain_until_ = Clock::now() + *drain_at_most;
}

void Front::take_signals(CommandControl& command) {
  while (const auto signal = signals_->next()) take(command, *signal);
}

void Front::take(CommandControl& command, int signal) {
  switch (signal) {
    case SIGTSTP:
      return suspend(command);
    case SIGCONT:
      if (terminal_ != nullptr) terminal_->enter();
      copy_size(command);
      return pass_on(command, SIGCONT);
    case SIGWINCH:
      copy_size(command);
      if (!stdio_.pty()) pass_on(command, SIGWINCH);
      return;
    case SIGINT:
      return interrupt(command);
    case SIGTERM:
      return tell_to_end(command, SIGTERM);
    case SIGHUP:
      if (!stdio_.lost_terminal()) break;
      tell_to_end(command, SIGHUP);
      return stdio_.hang_up();
    case SIGUSR1:
    case SIGUSR2:
      return pass_on(command, signal);
    default:
      break;
  }
  pass_on(command, signal);
  if (ended_) drained_ = true;
}

void Front::pass_on(CommandControl& command, int signal) const {
  if (!ended_) command.pass_on(signal);
}

// Whoever sends TERM, or closes the terminal, wants the end, also of a command that ignores it.
void Front::tell_to_end(CommandControl& command, int signal) {
  if (ended_) drained_ = true;
  else if (told_.again(Clock::now())) killed_ = told_again_ = true, command.kill();
  else command.tell_to_end(signal);
}

// A second one soon after the first means it: the command did not end by the first.
void Front::interrupt(CommandControl& command) {
  const Time now = Clock::now();
  if (ended_) drained_ = true;
  else if (interrupted_ && now - *interrupted_ < std::max(kill_grace_, kImpatient)) command.kill();
  else command.pass_on(SIGINT);
  interrupted_ = now;
}

// The command's process group is orphaned (its parent is in another session), so SIGTSTP would be dropped there, signal(7); SIGSTOP
// is not.
void Front::suspend(CommandControl& command) const {
  pass_on(command, SIGSTOP);
  if (terminal_ != nullptr) terminal_->restore();
  signals_->stop();
  // Continued: SIGCONT is waiting in the signal descriptor.
}

// Our own job stops as it would have without us, the whole group of it, by SIGTSTP, which the kernel drops where nobody could
// continue it. Then nobody stops.
void Front::stop_with_command(CommandControl& command) {
  if (terminal_ == nullptr || !terminal_->is_terminal()) return pass_on(command, SIGCONT);
  terminal_->restore();
  sigset_t stop;
  sigset_t pending;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);
  ::kill(0, SIGTSTP);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  sigpending(&pending);
  if (sigismember(&pending, SIGCONT) == 1) return;  // waits in the signal descriptor
  terminal_->enter();
  pass_on(command, SIGCONT);
}

void Front::copy_size(CommandControl& command) const {
  const auto size = stdio_.pty() ? window_size(0) : std::nullopt;
  if (!size) return;
  stdio_.set_window_size(*size);
  command.resize(*size);
}

bool Front::pending() const noexcept {
  return std::ranges::any_of(std::array{stdio_.output(), stdio_.error()},
                             [](const Pump* pump) { return pump != nullptr && pump->pending() > 0; });
}

bool Front::finished() const noexcept {
  if (!ended_ || drained_) return ended_;
  const auto waits = [](const Pump* pump, std::uint64_t read) {
    return pump != nullptr && !pump->done() && pump->total() - read <= kDrainAtMost;
  };
  return !waits(stdio_.output(), read_at_end_[0]) && !waits(stdio_.error(), read_at_end_[1]);
}

std::string Front::killed_because() const {
  if (!killed_) return "";
  return told_again_ ? "killed: it was told to end twice"
                     : format("killed: it was told to end and had not within {}", to_string(kill_grace_));
}

const char* Front::over_cap() const noexcept {
  if (stdio_.output() != nullptr && stdio_.output()->over_cap()) return "stdout";
  return stdio_.error() != nullptr && stdio_.error()->over_cap() ? "stderr" : nullptr;
}

std::uint64_t Front::dropped() const noexcept {
  std::uint64_t bytes = 0;
  for (const Pump* pump : {stdio_.output(), stdio_.error()}) bytes += pump != nullptr && pump->over_cap() ? pump->dropped() : 0;
  return bytes;
}

std::uint64_t Front::total() const noexcept {
  std::uint64_t bytes = 0;
  for (const Pump* pump : {stdio_.output(), stdio_.error()}) bytes += pump != nullptr ? pump->total() : 0;
  return bytes;
}

// A full disk or a closed terminal is no fault of the command, but its output is not where the caller thinks it is.
std::vector<std::string> Front::lost() const {
  std::vector<std::string> notes;
  for (const Pump* pump : {stdio_.output(), stdio_.error()}) {
    const int error = pump != nullptr ? pump->sink_errno() : 0;
    if (error == 0 || error == EPIPE || error == EIO) continue;
    notes.push_back(format("cannot write {}: {}; output of the command was lost", pump == stdio_.output() ? "stdout" : "stderr",
                           std::strerror(error)));
  }
  return notes;
}

}  // namespace belljar::front
