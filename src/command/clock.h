// When something is due in the life of a command: its timeout, its idle time, KILL after the grace, and how long its end may take.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/patience.h"

namespace belljar::command {

// A value that looks at no clock itself: all times come in. Timeouts of half a century and more are none.
class Clock {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Span = std::chrono::milliseconds;
  struct Terms {
    std::optional<Span> timeout;  // wall time from execve
    std::optional<Span> idle;     // without input, output or processor use
    Span grace{0};                // between TERM and KILL
    Span patience{0};             // after the last signal, for the end to be told
    Span slack{0};                // after the timeout, where it is first held by somebody inside
  };
  explicit Clock(const Terms& terms) noexcept : terms_(terms) {
    if (terms_.timeout >= kForever / 2) terms_.timeout.reset();
  }

  // All time counts from `at`: when the command was sent, and again when its execve is told, which comes later than it was.
  void begin(Time at) noexcept {
    begun_ = moved_ = at;
    if (terms_.timeout) wall_ = at + *terms_.timeout + terms_.slack;
    if (terms_.idle) idle_check_ = at + idle_step();
  }
  Time begun() const noexcept { return begun_; }
  const Terms& terms() const noexcept { return terms_; }
  // It has become nobody's: no timeout any more.
  void let_run() noexcept {
    terms_.timeout.reset();
    wall_.reset();
  }

  bool wall_over(Time now) const noexcept { return wall_ && now >= *wall_; }

  // Idleness is looked at in steps, since of processor use there is only a number that grows.
  void moved(Time at) noexcept { moved_ = at; }
  bool idle_check_due(Time now) const noexcept { return idle_check_ && now >= *idle_check_; }
  // `used`: processor time of the whole tree so far. Whether it has been idle for as long as it may.
  bool idle_over(Time now, std::chrono::microseconds used) noexcept {
    // A sleeping program with a timer uses some microseconds; more than 1 % of the step is work.
    if (used - used_ > std::chrono::duration_cast<std::chrono::microseconds>(idle_step()) / 100) moved_ = now;
    used_ = used;
    idle_check_ = std::min<Time>(now + idle_step(), moved_ + *terms_.idle);
    return now - moved_ >= *terms_.idle;
  }

  // TERM goes out: KILL is due after the grace. `inside`: somebody inside does that, and only their end is waited for here.
  void term(Time now, bool inside) noexcept {
    grace_over_ = now + terms_.grace;
    if (!inside) kill_at_ = grace_over_;
    if (!killed_) give_up_ = *grace_over_ + terms_.patience;
  }
  // KILL goes out.
  void kill(Time now) noexcept {
    kill_at_.reset();
    grace_over_.reset();
    if (!std::exchange(killed_, true)) give_up_ = now + terms_.patience;
  }
  // Telling them took until `now`: the patience begins then.
  void told(Time now) noexcept {
    if (give_up_) give_up_ = std::max(now, grace_over_.value_or(now)) + terms_.patience;
  }
  bool kill_due(Time now) const noexcept { return kill_at_ && now >= *kill_at_; }
  bool in_grace() const noexcept { return kill_at_.has_value(); }
  bool hopeless(Time now) const noexcept { return give_up_ && now >= *give_up_; }

  // The next deadline. `ending`: it is being ended, and has no time of its own any more.
  std::optional<Time> next(bool ending) const noexcept {
    std::optional<Time> next;
    for (const auto& at : {ending ? std::nullopt : wall_, ending ? std::nullopt : idle_check_, kill_at_, give_up_}) {
      if (at && (!next || *at < *next)) next = at;
    }
    return next;
  }

 private:
  std::chrono::steady_clock::duration idle_step() const noexcept {
    return std::max<std::chrono::steady_clock::duration>(*terms_.idle / 4, Span(5));
  }

  Terms terms_;
  Time begun_, moved_;
  std::chrono::microseconds used_{0};
  std::optional<Time> wall_, idle_check_, kill_at_, grace_over_, give_up_;
  bool killed_ = false;
};

}  // namespace belljar::command
