#include "runtime/supervise.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/format.h"
#include "broker/broker.h"
#include "command/ending.h"
#include "runtime/limits.h"
#include "runtime/told_to_end.h"

namespace belljar::runtime {
namespace {

using Clock = std::chrono::steady_clock;
using command::Act;
using command::How;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

// How long init may take to report a command that was killed before we kill init itself.
constexpr milliseconds kInitGrace = 500ms;
// A background job's terminal is looked at this often, to notice `fg`.
constexpr milliseconds kForegroundCheck = 250ms;
// Larger than any pipe we make (64 KiB) and any the command can grow it to without privilege (pipe-max-size, 1 MiB).
constexpr std::uint64_t kDrainAtMost = 2 << 20;

class Supervisor {
 public:
  Supervisor(launch::Sandbox& sandbox, Stdio& stdio, const Limits& limits, const SuperviseOptions& options)
      : sandbox_(sandbox),
        stdio_(stdio),
        limits_(limits),
        options_(options),
        ending_({.timeout = effective_timeout(limits),
                 .idle = limits.idle_timeout,
                 .grace = limits.kill_grace,
                 .patience = kInitGrace,
                 .slack = {}}),
        told_(limits.kill_grace) {
    ending_.clock().begin(Clock::now());
  }

  Supervised run() {
    take_events();
    while (!finished()) turn();
    return finish();
  }

 private:
  void turn() {
    const Clock::time_point now = Clock::now();
    on_deadlines(now);
    build_pollset();
    const int ready = poll_until(next_deadline(now), now);
    if (ready < 0) return;
    if (gone_ && ready == 0 && !anything_pending()) drained_ = true;
    dispatch();
  }

  // --- waiting

  void build_pollset() {
    count_ = 0;
    signal_at_ = control_at_ = cancel_at_ = broker_at_ = -1;
    const auto add = [&](int fd, int& at) {
      if (fd < 0) return;
      at = static_cast<int>(count_);
      set_[count_++] = {fd, POLLIN, 0};
    };
    if (options_.signals != nullptr) add(options_.signals->fd(), signal_at_);
    if (!gone_) {
      add(sandbox_.control_fd(), control_at_);
      if (!ending_.ending()) add(options_.cancel_fd, cancel_at_);
      if (options_.broker != nullptr) add(options_.broker->poll_fd(), broker_at_);
    }
    Pump* const pumps[] = {stdio_.input(), stdio_.output(), stdio_.error()};
    for (std::size_t i = 0; i < 3; ++i) {
      pump_at_[i] = count_;
      pump_count_[i] = pumps[i] == nullptr || (i == 0 && gone_) ? 0 : pumps[i]->add_pollfds(&set_[count_]);
      count_ += static_cast<std::size_t>(pump_count_[i]);
    }
    notices_at_ = count_;
    if (options_.limit_set != nullptr && !gone_) {
      for (const auto& notice : options_.limit_set->notices()) {
        if (count_ < set_.size()) set_[count_++] = {notice.fd, notice.events, 0};
      }
    }
  }

  std::optional<Clock::time_point> next_deadline(Clock::time_point now) const {
    std::optional<Clock::time_point> next;
    const auto consider = [&](std::optional<Clock::time_point> at) {
      if (at && (!next || *at < *next)) next = at;
    };
    if (gone_) {
      // Nobody writes any more: what is there is there now. Only a slow reader of ours is waited for.
      if (!anything_pending()) return now;
      consider(drain_until_);
      return next;
    }
    consider(ending_.next());
    if (options_.limit_set != nullptr) consider(options_.limit_set->next_sample());
    if ((stdio_.input() != nullptr && stdio_.input()->waits_for_foreground()) || wants_raw()) consider(now + kForegroundCheck);
    return next;
  }

  int poll_until(std::optional<Clock::time_point> deadline, Clock::time_point now) {
    timespec wait{};
    if (deadline && *deadline > now) {
      const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(*deadline - now).count();
      wait = {static_cast<time_t>(left / 1'000'000'000), static_cast<long>(left % 1'000'000'000)};
    }
    return ppoll(set_.data(), count_, deadline ? &wait : nullptr, nullptr);
  }

  void dispatch() {
    if (signal_at_ >= 0 && set_[static_cast<std::size_t>(signal_at_)].revents != 0) on_signals();
    Pump* const pumps[] = {stdio_.input(), stdio_.output(), stdio_.error()};
    bool moved = false;
    for (std::size_t i = 0; i < 3; ++i) {
      if (pump_count_[i] > 0) moved |= pumps[i]->handle(&set_[pump_at_[i]], pump_count_[i]);
    }
    if (moved) ending_.clock().moved(Clock::now());
    check_output_limit();
    if (gone_) return;
    if (broker_at_ >= 0 && set_[static_cast<std::size_t>(broker_at_)].revents != 0) options_.broker->on_readable();
    if (cancel_at_ >= 0 && set_[static_cast<std::size_t>(cancel_at_)].revents != 0) stop(command::cancelled());
    for (std::size_t i = notices_at_; i < count_; ++i) {
      if (set_[i].revents != 0) {
        sample_limits(Clock::now());
        break;
      }
    }
    // Last: once the command's end is known the streams are complete, and they have had their turn.
    if (control_at_ >= 0 && set_[static_cast<std::size_t>(control_at_)].revents != 0) take_events();
  }

  // --- what happens

  void take_events() {
    while (!gone_) {
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
        return stop_with_command();
      case launch::Event::Kind::kGone:
        break;
    }
    end();
  }

  // The tree is dead, or dies now.
  enum class End { kReap, kLetGo };
  void end(End how = End::kReap) {
    if (gone_) return;
    if (ended_ == Clock::time_point()) ended_ = Clock::now();
    if (how == End::kLetGo) supervised_.leaving = sandbox_.let_go();
    else sandbox_.kill_and_reap();
    gone_ = true;
    if (stdio_.output() != nullptr) read_at_end_[0] = stdio_.output()->total();
    if (stdio_.error() != nullptr) read_at_end_[1] = stdio_.error()->total();
    if (stdio_.input() != nullptr) stdio_.input()->give_back();
    if (ending_.ending()) drain_until_ = Clock::now() + std::max(limits_.kill_grace, milliseconds(1000));
  }

  void on_signals() {
    while (const auto signal = options_.signals->next()) {
      switch (*signal) {
        case SIGTSTP:
          suspend();
          break;
        case SIGCONT:
          if (options_.terminal != nullptr) options_.terminal->enter();
          copy_window_size();
          sandbox_.signal(1, SIGCONT);
          break;
        case SIGWINCH:
          copy_window_size();
          if (!stdio_.pty()) forward(SIGWINCH);
          break;
        case SIGINT:
          interrupt();
          break;
        case SIGTERM:
          tell_to_end(SIGTERM);
          break;
        case SIGHUP:
          if (!stdio_.lost_terminal()) {
            forward(SIGHUP);
          } else {
            tell_to_end(SIGHUP);
            stdio_.hang_up();
          }
          if (gone_) drained_ = true;
          break;
        default:
          forward(*signal);
          if (gone_ && *signal != SIGUSR1 && *signal != SIGUSR2) drained_ = true;
      }
    }
  }

  // What a terminal sends to its job goes to the command's group, and so does what timeout(1) sends to a job. Anything else goes to
  // the command, for which our pid stands: a supervisor that is told to reload keeps its workers.
  void forward(int signal) {
    if (gone_) return;
    if (signal == SIGINT || signal == SIGQUIT || signal == SIGWINCH || signal == SIGTERM) sandbox_.signal(1, signal);
    else sandbox_.signal_alone(1, signal);
  }

  // Whoever sends TERM, or closes the terminal, wants the end, also of a command that ignores it.
  void tell_to_end(int signal) {
    if (gone_) drained_ = true;
    else if (told_.again(Clock::now())) return carry_out(ending_.kill(Clock::now()));
    forward(signal);
    ending_.clock().kill_by(*told_.kill_at());
  }

  // A second one soon after the first means it: the command did not end by the first.
  void interrupt() {
    const Clock::time_point now = Clock::now();
    if (gone_) drained_ = true;
    else if (interrupted_ && now - *interrupted_ < std::max(limits_.kill_grace, milliseconds(2000))) carry_out(ending_.kill(now));
    else forward(SIGINT);
    interrupted_ = now;
  }

  // The command's process group is orphaned (its parent is in another session), so SIGTSTP would be dropped there, signal(7);
  // SIGSTOP is not.
  void suspend() {
    if (!gone_) sandbox_.signal(1, SIGSTOP);
    if (options_.terminal != nullptr) options_.terminal->restore();
    kill(getpid(), SIGSTOP);
    // Continued: SIGCONT is waiting in the signal descriptor.
  }

  // ^Z was typed into the sandbox's terminal and its job has stopped: our own job stops as it would have without us, the whole
  // group of it, by SIGTSTP, which the kernel drops where nobody could continue it. Then nobody stops.
  void stop_with_command() {
    if (options_.terminal == nullptr || !options_.terminal->is_terminal()) return sandbox_.signal(1, SIGCONT);
    options_.terminal->restore();
    sigset_t stop;
    sigset_t pending;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);
    kill(0, SIGTSTP);
    pthread_sigmask(SIG_BLOCK, &stop, nullptr);
    sigpending(&pending);
    if (sigismember(&pending, SIGCONT) == 1) return;  // waits in the signal descriptor
    options_.terminal->enter();
    sandbox_.signal(1, SIGCONT);
  }

  void copy_window_size() {
    if (!stdio_.pty()) return;
    if (const auto size = window_size(0)) stdio_.set_window_size(*size);
  }

  bool wants_raw() const noexcept {
    return options_.terminal != nullptr && options_.terminal->is_terminal() && !options_.terminal->is_raw();
  }

  void on_deadlines(Clock::time_point now) {
    if (wants_raw() && !gone_) options_.terminal->enter();
    if (gone_) {
      if (drain_until_ && now >= *drain_until_) drained_ = true;
      return;
    }
    carry_out(ending_.due(now));
    if (ending_.idle_look_due(now)) carry_out(ending_.look_idle(now, tree_cpu()));
    sample_limits(now);
  }

  void stop(command::Cause cause, How how = How::kGently) {
    if (!gone_) carry_out(ending_.stop(std::move(cause), how, Clock::now()));
  }

  void stop_at_limit(Reason reason, std::string limit, std::string message) {
    if (ending_.ending() || gone_) return;
    supervised_.result.limits_hit.push_back(std::move(limit));
    stop({reason, std::move(message)}, How::kAtOnce);
  }

  void carry_out(Act act) {
    if (gone_ || act == Act::kNone) return;
    if (act == Act::kGiveUp) return end();
    sandbox_.signal(0, act == Act::kTerm ? SIGTERM : SIGKILL);
    if (act == Act::kTerm) sandbox_.signal(0, SIGCONT);
  }

  // --- idle and limits

  std::chrono::microseconds tree_cpu() const {
    if (options_.limit_set != nullptr) return options_.limit_set->tree_cpu();
    return {};
  }

  void sample_limits(Clock::time_point now) {
    if (options_.limit_set == nullptr || gone_) return;
    while (auto hit = options_.limit_set->sample(now)) {
      if (hit->kill) stop_at_limit(hit->reason, std::move(hit->limit), std::move(hit->message));
    }
  }

  void check_output_limit() {
    if (limits_.output_action != OutputAction::kKill || !limits_.output_bytes || ending_.ending()) return;
    for (Pump* pump : {stdio_.output(), stdio_.error()}) {
      if (pump == nullptr || !pump->over_cap()) continue;
      output_hit_ = true;
      stop_at_limit(
          Reason::kOutput, "output",
          format("{} exceeded the limit of {} bytes", pump == stdio_.output() ? "stdout" : "stderr", limits_.output_bytes->count));
      return;
    }
  }

  // --- the end

  bool anything_pending() const {
    for (Pump* pump : {stdio_.output(), stdio_.error()}) {
      if (pump != nullptr && pump->pending() > 0) return true;
    }
    return false;
  }

  bool finished() const {
    if (!gone_) return false;
    if (drained_) return true;
    for (Pump* pump : {stdio_.output(), stdio_.error()}) {
      // No pipe holds more than kDrainAtMost, pipe(7): who still writes then escaped, and has no claim on us.
      if (pump != nullptr && !pump->done() && pump->total() - read_at_end_[pump == stdio_.error()] <= kDrainAtMost) return false;
    }
    return true;
  }

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
      if (!ending_.ending() && status == SIGKILL && told_.kill_at())
        result.message = format("killed: it was told to end and had not within {}", to_string(limits_.kill_grace));
      else if (!ending_.ending() && !exit_ && result.reason == Reason::kSignalled)
        result.message = "the sandbox was killed from outside, or the machine ran out of memory";
    }
    note_lost_output();
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

  // A full disk or a closed terminal is no fault of the command, but its output is not where the caller thinks it is.
  void note_lost_output() {
    for (Pump* pump : {stdio_.output(), stdio_.error()}) {
      if (pump == nullptr) continue;
      if (pump->over_cap()) supervised_.output_dropped += pump->dropped();
      if (pump->sink_errno() == 0 || pump->sink_errno() == EPIPE || pump->sink_errno() == EIO) continue;
      const char* name = pump == stdio_.output() ? "stdout" : "stderr";
      supervised_.notes.push_back(
          format("cannot write {}: {}; output of the command was lost", name, std::strerror(pump->sink_errno())));
    }
  }

  launch::Sandbox& sandbox_;
  Stdio& stdio_;
  const Limits& limits_;
  const SuperviseOptions& options_;
  Supervised supervised_;

  // signals, control, cancel, broker; two for each pump; notices of cgroups
  std::array<pollfd, 4 + 6 + 8> set_{};
  std::size_t count_ = 0, notices_at_ = 0;
  int signal_at_ = -1, control_at_ = -1, cancel_at_ = -1, broker_at_ = -1;
  std::size_t pump_at_[3]{};
  int pump_count_[3]{};

  command::Ending ending_;
  std::optional<Clock::time_point> drain_until_, interrupted_;
  Clock::time_point ended_{};
  ToldToEnd told_;
  std::optional<launch::Exit> exit_;
  std::uint64_t read_at_end_[2]{};
  bool gone_ = false, drained_ = false, output_hit_ = false;
};

}  // namespace

std::optional<milliseconds> effective_timeout(const Limits& limits) noexcept {
  if (limits.timeout && limits.max_timeout) return std::min(*limits.timeout, *limits.max_timeout);
  return limits.timeout ? limits.timeout : limits.max_timeout;
}

Supervised supervise(launch::Sandbox& sandbox, Stdio& stdio, const Limits& limits, const SuperviseOptions& options) {
  return Supervisor(sandbox, stdio, limits, options).run();
}

}  // namespace belljar::runtime
