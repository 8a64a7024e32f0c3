// The one loop of a front: how a signal of the caller reaches the command, how its streams move, whose terminal is raw, and what is
// still delivered once it has ended. The same for `run`, for `exec` in a sandbox that stays, and for containers and clouds.
//
// Signals: INT, TERM, HUP, QUIT, USR1 and USR2 are passed on. A second INT soon after the first means KILL.
// TERM, or a terminal that goes away, means the end: KILL follows after the grace (term_grace.h). TSTP stops the command and then
// us, CONT continues both. WINCH is a new size of its terminal. Once the command has ended, a signal that would end us ends the
// waiting for slow readers.
#pragma once

#include <poll.h>
#include <sys/ioctl.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "front/pump.h"
#include "front/signals.h"
#include "front/stdio.h"
#include "front/term_grace.h"
#include "front/terminal.h"

namespace belljar::front {

using Time = std::chrono::steady_clock::time_point;

// The holder of the command, as the loop sees it. Called by Front::run() alone, on its thread.
class CommandControl {
 public:
  static constexpr std::size_t kMostFds = 12;

  virtual ~CommandControl() = default;
  // STOP, CONT and WINCH, too. None after the end.
  virtual void pass_on(int signal) = 0;
  // TERM, or HUP where the terminal went away: the end is meant. KILL follows, by kill().
  virtual void tell_to_end(int signal) { pass_on(signal); }
  // KILL to all of it.
  virtual void kill() = 0;
  // Of a terminal that is not a pty of Stdio's.
  virtual void resize(const winsize& /*size*/) {}
  // Adds the descriptors to poll until the end, at most kMostFds; returns how many.
  virtual std::size_t add_pollfds(pollfd* into) = 0;
  // `fds` are those of add_pollfds with revents, after the end none; `moved`: bytes did. The streams have had their turn, so they
  // are complete where the end is found here.
  virtual void handle(std::span<const pollfd> fds, bool moved) = 0;
  // next(): the time of the next deadline; on_time(): acts on those that have passed. Both until the end.
  virtual std::optional<Time> next() const { return {}; }
  virtual void on_time(Time /*now*/) {}
};

// One thread. What it is given outlives it.
class Front {
 public:
  // `signals`, `terminal`: may be null. `kill_grace`: Limits::kill_grace.
  Front(Stdio& stdio, Signals* signals, RawTerminal* terminal, std::chrono::milliseconds kill_grace) noexcept
      : stdio_(stdio), signals_(signals), terminal_(terminal), told_(kill_grace), kill_grace_(kill_grace) {}

  // Until ended() was told and what the streams hold is delivered.
  void run(CommandControl& command);

  // The command has ended, and nothing of it writes any more. `drain_at_most`: for slow readers of ours; unset: however long it
  // takes.
  void ended(std::optional<std::chrono::milliseconds> drain_at_most = {});
  bool has_ended() const noexcept { return ended_; }
  // Nothing is waited for any more.
  void give_up() noexcept { ended_ = drained_ = true; }
  // ^Z was typed into the command's own terminal and its job has stopped.
  void stop_with_command(CommandControl& command);

  // The result's message for a command that we killed because it had been told to end; empty: it was not.
  std::string killed_because() const;
  // "stdout" or "stderr", when one of them has more than the cap.
  const char* over_cap() const noexcept;
  // Bytes of both beyond it, and of both at all.
  std::uint64_t dropped() const noexcept;
  std::uint64_t total() const noexcept;
  // For people: "cannot write stdout: ...". A reader that went away is no loss.
  std::vector<std::string> lost() const;

 private:
  void turn(CommandControl& command);
  std::optional<Time> deadline(const CommandControl& command, Time now) const;
  void take_signals(CommandControl& command);
  void take(CommandControl& command, int signal);
  void pass_on(CommandControl& command, int signal) const;
  void tell_to_end(CommandControl& command, int signal);
  void interrupt(CommandControl& command);
  void suspend(CommandControl& command) const;
  void copy_size(CommandControl& command) const;
  bool wants_raw() const noexcept { return terminal_ != nullptr && terminal_->is_terminal() && !terminal_->is_raw(); }
  bool pending() const noexcept;
  bool finished() const noexcept;

  Stdio& stdio_;
  Signals* signals_;
  RawTerminal* terminal_;
  TermGrace told_;
  std::chrono::milliseconds kill_grace_;
  std::optional<Time> interrupted_, drain_until_;
  std::uint64_t read_at_end_[2]{};
  bool ended_ = false, drained_ = false, killed_ = false;
  bool told_again_ = false;  // of two wishes for its end the second killed it
};

}  // namespace belljar::front
