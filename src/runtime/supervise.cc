// The loop is Front's; this file is what holds the command for it (front::CommandControl) and when
// it ends (Ending). In handle() the control descriptor comes last: when it tells the command's end,
// all output that poll reported in this turn was read, and what the broker was told in it was
// taken.
//
// The end is told by init, with the status and the usage of wait4(2). When init is gone without a
// word it was killed, and everything inside died with it, so the status is that of SIGKILL. When a
// killed command's end is not told within kInitGrace, the sandbox is killed as a whole.
//
// TERM goes to everything inside, followed by CONT, since a stopped process takes TERM only when it
// is continued, signal(7). Limits kill at once: a command over its memory or disk would use the
// grace to go on.
//
// After the end the streams are drained with a bound of time only when we ended the command. A
// command that ended by itself may have a slow reader, and its output is all there; that is waited
// for.
#include "runtime/supervise.h"

#include <poll.h>

#include <algorithm>
#include <optional>
#include <span>

#include "base/format.h"
#include "broker/broker.h"
#include "command/ending.h"
#include "front/front.h"
#include "runtime/limits.h"

namespace belljar::runtime {
namespace {

using Clock = std::chrono::steady_clock;
using command::EndAction;
using command::EndMode;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

// How long init may take to report a command that was killed before we kill init itself.
constexpr milliseconds kInitGrace = 500ms;

class Supervisor final : public front::CommandControl {
 public:
  Supervisor(launch::Sandbox& sandbox, front::Stdio& stdio, const Limits& limits, const SuperviseOptions& options)
      : sandbox_(sandbox),
        stdio_(stdio),
        limits_(limits),
        options_(options),
        ending_({.timeout = effective_timeout(limits),
                 .idle = limits.idle_timeout,
                 .grace = limits.kill_grace,
                 .patience = kInitGrace,
                 .slack = {}}),
        front_(stdio, options.signals, options.terminal, limits.kill_grace) {
    ending_.clock().begin(Clock::now());
  }

  Supervised run() {
    take_events();
    front_.run(*this);
    return finish();
  }

  // What a terminal sends to its job goes to the command's group, and so does what timeout(1) sends to a job. Anything else goes to
  // the command, for which our pid stands: a supervisor that is told to reload keeps its workers.
  void pass_on(int signal) override {
    const bool to_group =
        signal == SIGINT || signal == SIGQUIT || signal == SIGWINCH || signal == SIGTERM || signal == SIGSTOP || signal == SIGCONT;
    if (to_group) sandbox_.signal(1, signal);
    else sandbox_.signal_alone(1, signal);
  }

  void kill() override {
    if (!gone()) carry_out(ending_.kill(Clock::now()));
  }

  std::size_t add_pollfds(pollfd* into) override {
    std::size_t count = 0;
    const auto add = [&](int fd, short events) { into[count++] = {fd, events, 0}; };
    add(sandbox_.control_fd(), POLLIN);
    add(ending_.ending() ? -1 : options_.cancel_fd, POLLIN);
    add(options_.broker != nullptr ? options_.broker->poll_fd() : -1, POLLIN);
    if (options_.limit_set == nullptr) return count;
    for (const auto& notice : options_.limit_set->notices()) {
      if (count < kMostFds) add(notice.fd, notice.events);
    }
    return count;
  }

  void handle(std::span<const pollfd> fds, bool moved) override {
    if (moved) ending_.clock().moved(Clock::now());
    check_output_limit();
    if (gone() || fds.empty()) return;
    if (fds[kBroker].revents != 0) options_.broker->on_readable();
    if (fds[kCancel].revents != 0) stop(command::cancelled());
    if (std::ranges::any_of(fds.subspan(kNotices), [](const pollfd& notice) { return notice.revents != 0; }))
      sample_limits(Clock::now());
    // Last: once the command's end is known the streams are complete, and they have had their turn.
    if (fds[kControl].revents != 0) take_events();
  }

  std::optional<Clock::time_point> next() const override {
    std::optional<Clock::time_point> next = ending_.next();
    const auto sample = options_.limit_set != nullptr ? options_.limit_set->next_sample() : std::nullopt;
    if (sample && (!next || *sample < *next)) next = sample;
    return next;
  }

  void on_time(Clock::time_point now) override {
    carry_out(ending_.due(now));
    if (ending_.idle_check_due(now)) carry_out(ending_.check_idle(now, tree_cpu()));
    sample_limits(now);
  }

 private:
  static constexpr std::size_t kControl = 0, kCancel = 1, kBroker = 2, kNotices = 3;  // of add_pollfds()

  bool gone() const noexcept { return front_.has_ended(); }

  // --- what happens

  void take_events() {
    while (!gone()) {
      const auto event = sandbox_.next_event();
      if (!event) return;
      on_event(*event);
    }
  }

  void on_event(const launch::Event& event) {
    switch (event.kind) {
      case launch::Event::Kind::kStarted:
        ending_.clock().begin(event.at);  // on a busy machine its message comes later than the command's first output
        return;
      case launch::Event::Kind::kExecFailed:
        supervised_.exec_errno = event.errnum;
        supervised_.failed_call = event.failed_call;
        break;
      case launch::Event::Kind::kExited:
        exit_ = event.exit;
        ended_ = event.at;
        return end(options_.front_ends ? End::kLetGo : End::kReap);
      case launch::Event::Kind::kAlive:  // nobody asks here
      case launch::Event::Kind::kPending:
        return;
      case launch::Event::Kind::kStopped:
        return front_.stop_with_command(*this);
      case launch::Event::Kind::kGone:
        break;
    }
    end();
  }

  // The tree is dead, or dies now.
  enum class End { kReap, kLetGo };
  void end(End how = End::kReap) {
    if (gone()) return;
    if (ended_ == Clock::time_point()) ended_ = Clock::now();
    if (how == End::kLetGo) supervised_.leaving = sandbox_.let_go();
    else sandbox_.kill_and_reap();
    front_.ended(ending_.ending() ? std::optional(std::max(limits_.kill_grace, milliseconds(1000))) : std::nullopt);
  }

  void stop(command::Cause cause, EndMode how = EndMode::kGently) {
    if (!gone()) carry_out(ending_.stop(std::move(cause), how, Clock::now()));
  }

  void stop_at_limit(Reason reason, std::string limit, std::string message) {
    if (ending_.ending() || gone()) return;
    supervised_.result.limits_hit.push_back(std::move(limit));
    stop({reason, std::move(message)}, EndMode::kAtOnce);
  }

  void carry_out(EndAction act) {
    if (gone() || act == EndAction::kNone) return;
    if (act == EndAction::kGiveUp) return end();
    sandbox_.signal(0, act == EndAction::kTerm ? SIGTERM : SIGKILL);
    if (act == EndAction::kTerm) sandbox_.signal(0, SIGCONT);
  }

  // --- idle and limits

  std::chrono::microseconds tree_cpu() const {
    if (options_.limit_set != nullptr) return options_.limit_set->tree_cpu();
    return {};
  }

  void sample_limits(Clock::time_point now) {
    if (options_.limit_set == nullptr || gone()) return;
    while (auto hit = options_.limit_set->sample(now)) {
      if (hit->kill) stop_at_limit(hit->reason, std::move(hit->limit), std::move(hit->message));
    }
  }

  void check_output_limit() {
    if (limits_.output_action != OutputAction::kKill || !limits_.output_bytes || ending_.ending()) return;
    const char* const stream = front_.over_cap();
    if (stream == nullptr) return;
    output_hit_ = true;
    stop_at_limit(Reason::kOutput, "output", format("{} exceeded the limit of {} bytes", stream, limits_.output_bytes->count));
  }

  // --- the end

  Supervised finish() {
    ExecResult& result = supervised_.result;
    supervised_.ended = ended_;
    result.duration = std::chrono::duration_cast<std::chrono::microseconds>(ended_ - ending_.clock().begun());
    // No report from init: it was killed, and took the command with it.
    const int status = exit_ ? exit_->wait_status : SIGKILL;
    if (supervised_.exec_errno == 0) {
      ending_.tell_exit(result, status);
      if (exit_) result.usage = command::usage_of(exit_->usage);
      apply_limits(status);
      if (std::string why = front_.killed_because(); !ending_.ending() && status == SIGKILL && !why.empty())
        result.message = std::move(why);
      else if (!ending_.ending() && !exit_ && result.reason == Reason::kSignalled)
        result.message = "the sandbox was killed from outside, or the machine ran out of memory";
    }
    supervised_.notes = front_.lost();
    supervised_.output_dropped = front_.dropped();
    // A shell in between reports the signal as a code.
    if (result.reason != Reason::kExited || result.exit_code > 128) stdio_.undo_modes();
    result.out = stdio_.take_out();
    result.err = stdio_.take_err();
    supervised_.output_dropped += result.out.omitted + result.err.omitted;
    if (!output_hit_ && supervised_.output_dropped > 0) result.limits_hit.emplace_back("output");
    return std::move(supervised_);
  }

  void apply_limits(int status) {
    if (options_.limit_set == nullptr) return;
    ExecResult& result = supervised_.result;
    Finish end = options_.limit_set->finish(status, exit_ ? exit_->usage : rusage{});
    result.usage = end.usage;
    for (std::string& limit : end.limits_hit) {
      if (std::ranges::find(result.limits_hit, limit) == result.limits_hit.end()) result.limits_hit.push_back(std::move(limit));
    }
    if (end.reason) ending_.tell_limit(result, *end.reason, std::move(end.message));
  }

  launch::Sandbox& sandbox_;
  front::Stdio& stdio_;
  const Limits& limits_;
  const SuperviseOptions& options_;
  Supervised supervised_;

  command::Ending ending_;
  front::Front front_;
  Clock::time_point ended_{};
  std::optional<launch::Exit> exit_;
  bool output_hit_ = false;
};

}  // namespace

std::optional<milliseconds> effective_timeout(const Limits& limits) noexcept {
  if (limits.timeout && limits.max_timeout) return std::min(*limits.timeout, *limits.max_timeout);
  return limits.timeout ? limits.timeout : limits.max_timeout;
}

Supervised supervise(launch::Sandbox& sandbox, front::Stdio& stdio, const Limits& limits, const SuperviseOptions& options) {
  return Supervisor(sandbox, stdio, limits, options).run();
}

}  // namespace belljar::runtime
