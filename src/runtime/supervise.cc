#include "runtime/supervise.h"

#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

#include "base/format.h"
#include "broker/broker.h"
#include "front/front.h"
#include "runtime/limits.h"

namespace belljar::runtime {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

// How long init may take to report a command that was killed before we kill init itself.
constexpr milliseconds kInitGrace = 500ms;
constexpr int kKilled = 128 + SIGKILL;

class Supervisor final : public front::Commanded {
 public:
  Supervisor(launch::Sandbox& sandbox, front::Stdio& stdio, const Limits& limits, const SuperviseOptions& options)
      : sandbox_(sandbox),
        stdio_(stdio),
        limits_(limits),
        options_(options),
        front_(stdio, options.signals, options.terminal, limits.kill_grace) {
    start_clock(Clock::now());
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
    if (gone()) return;
    kill_at_.reset();
    sandbox_.signal(0, SIGKILL);
    if (!give_up_) give_up_ = Clock::now() + kInitGrace;
  }

  std::size_t add_pollfds(pollfd* into) override {
    std::size_t count = 0;
    const auto add = [&](int fd, short events) { into[count++] = {fd, events, 0}; };
    add(sandbox_.control_fd(), POLLIN);
    add(cause_ ? -1 : options_.cancel_fd, POLLIN);
    add(options_.broker != nullptr ? options_.broker->poll_fd() : -1, POLLIN);
    if (options_.limit_set == nullptr) return count;
    for (const auto& notice : options_.limit_set->notices()) {
      if (count < kMostFds) add(notice.fd, notice.events);
    }
    return count;
  }

  void handle(std::span<const pollfd> fds, bool moved) override {
    if (moved) last_activity_ = Clock::now();
    check_output_limit();
    if (gone() || fds.empty()) return;
    if (fds[kBroker].revents != 0) options_.broker->on_readable();
    if (fds[kCancel].revents != 0) stop(Reason::kCancelled, "cancelled by the caller");
    if (std::ranges::any_of(fds.subspan(kNotices), [](const pollfd& notice) { return notice.revents != 0; }))
      sample_limits(Clock::now());
    // Last: once the command's end is known the streams are complete, and they have had their turn.
    if (fds[kControl].revents != 0) take_events();
  }

  std::optional<Clock::time_point> next() const override {
    std::optional<Clock::time_point> next;
    const auto consider = [&](std::optional<Clock::time_point> at) {
      if (at && (!next || *at < *next)) next = at;
    };
    if (!cause_) {
      consider(wall_);
      consider(idle_check_);
    }
    consider(kill_at_);
    consider(give_up_);
    if (options_.limit_set != nullptr) consider(options_.limit_set->next_sample());
    return next;
  }

  void on_time(Clock::time_point now) override {
    if (!cause_ && wall_ && now >= *wall_) stop(Reason::kTimeout, timeout_message(*effective_timeout(limits_)));
    if (!cause_ && idle_check_ && now >= *idle_check_) check_idle(now);
    sample_limits(now);
    if (kill_at_ && now >= *kill_at_) kill();
    if (give_up_ && now >= *give_up_) end();
  }

 private:
  // All times count from execve, as init saw it: on a busy machine its message comes later than the command's first output.
  void start_clock(Clock::time_point at) {
    started_ = last_activity_ = at;
    if (const auto timeout = effective_timeout(limits_)) wall_ = at + *timeout;
    if (limits_.idle_timeout) idle_check_ = at + idle_step();
  }

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
        start_clock(event.at);
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
    front_.ended(cause_ ? std::optional(std::max(limits_.kill_grace, milliseconds(1000))) : std::nullopt);
  }

  // TERM to everything inside, KILL after the grace. CONT because a stopped process does not see TERM.
  void stop(Reason reason, std::string message) {
    if (cause_ || gone()) return;
    cause_ = reason;
    supervised_.result.message = std::move(message);
    if (limits_.kill_grace <= 0ms) return kill();
    sandbox_.signal(0, SIGTERM);
    sandbox_.signal(0, SIGCONT);
    kill_at_ = Clock::now() + limits_.kill_grace;
  }

  void stop_at_limit(Reason reason, std::string limit, std::string message) {
    if (cause_ || gone()) return;
    cause_ = reason;
    supervised_.result.message = std::move(message);
    supervised_.result.limits_hit.push_back(std::move(limit));
    kill();
  }

  // --- idle and limits

  Clock::duration idle_step() const { return std::max<Clock::duration>(*limits_.idle_timeout / 4, 5ms); }

  void check_idle(Clock::time_point now) {
    const auto cpu = tree_cpu();
    // A sleeping program with a timer uses some microseconds; more than 1 % of the step is work.
    if (cpu - last_cpu_ > std::chrono::duration_cast<std::chrono::microseconds>(idle_step()) / 100) last_activity_ = now;
    last_cpu_ = cpu;
    if (now - last_activity_ >= *limits_.idle_timeout)
      return stop(Reason::kIdle, format("no input, output or processor use for {}", to_string(*limits_.idle_timeout)));
    idle_check_ = std::min(now + idle_step(), last_activity_ + *limits_.idle_timeout);
  }

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
    if (limits_.output_action != OutputAction::kKill || !limits_.output_bytes || cause_) return;
    const char* const stream = front_.over_cap();
    if (stream == nullptr) return;
    output_hit_ = true;
    stop_at_limit(Reason::kOutput, "output", format("{} exceeded the limit of {} bytes", stream, limits_.output_bytes->count));
  }

  // --- the end

  Supervised finish() {
    ExecResult& result = supervised_.result;
    supervised_.ended = ended_;
    result.duration = std::chrono::duration_cast<std::chrono::microseconds>(ended_ - started_);
    // No report from init: it was killed, and took the command with it.
    const int status = exit_ ? exit_->wait_status : SIGKILL;
    if (supervised_.exec_errno == 0) {
      std::string why = std::move(result.message);
      set_exit(result, status);
      if (exit_) set_usage(exit_->usage);
      if (cause_) {
        result.message = std::move(why);
        result.reason = *cause_;
        result.exit_code = exit_code_of(*cause_, result.exit_code);
      }
      apply_limits(status);
      if (!cause_ && status == SIGKILL && front_.told_to_end())
        result.message = format("killed: it was told to end and had not within {}", to_string(limits_.kill_grace));
      else if (!cause_ && !exit_ && result.reason == Reason::kSignalled)
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

  static int exit_code_of(Reason reason, int own) noexcept {
    switch (reason) {
      case Reason::kTimeout:
      case Reason::kIdle:
        return 124;
      case Reason::kCancelled:
        return own >= 128 ? own : 128 + SIGTERM;  // never a success: it was told to end
      default:
        return kKilled;
    }
  }

  void set_usage(const rusage& usage) {
    const auto micro = [](const timeval& time) { return std::chrono::microseconds(time.tv_sec * 1'000'000LL + time.tv_usec); };
    supervised_.result.usage.cpu_user = micro(usage.ru_utime);
    supervised_.result.usage.cpu_system = micro(usage.ru_stime);
    if (usage.ru_maxrss > 0) supervised_.result.usage.peak_memory = Bytes{static_cast<std::uint64_t>(usage.ru_maxrss) * 1024};
  }

  void apply_limits(int status) {
    if (options_.limit_set == nullptr) return;
    ExecResult& result = supervised_.result;
    Finish end = options_.limit_set->finish(status, exit_ ? exit_->usage : rusage{});
    result.usage = end.usage;
    for (std::string& limit : end.limits_hit) {
      if (std::ranges::find(result.limits_hit, limit) == result.limits_hit.end()) result.limits_hit.push_back(std::move(limit));
    }
    if (cause_ || !end.reason) return;
    result.reason = *end.reason;
    result.message = std::move(end.message);
    if (result.signal) result.exit_code = 128 + *result.signal;
  }

  launch::Sandbox& sandbox_;
  front::Stdio& stdio_;
  const Limits& limits_;
  const SuperviseOptions& options_;
  Supervised supervised_;

  front::Front front_;
  std::optional<Clock::time_point> wall_, idle_check_, kill_at_, give_up_;
  Clock::time_point started_, last_activity_, ended_{};
  std::chrono::microseconds last_cpu_{0};
  std::optional<Reason> cause_;  // why we end it; unset while it runs and when it ended by itself
  std::optional<launch::Exit> exit_;
  bool output_hit_ = false;
};

}  // namespace

std::optional<milliseconds> effective_timeout(const Limits& limits) noexcept {
  if (limits.timeout && limits.max_timeout) return std::min(*limits.timeout, *limits.max_timeout);
  return limits.timeout ? limits.timeout : limits.max_timeout;
}

void set_exit(ExecResult& result, int wait_status) {
  if (!WIFSIGNALED(wait_status)) {
    result.reason = Reason::kExited;
    result.exit_code = WEXITSTATUS(wait_status);
    return;
  }
  const int signal = WTERMSIG(wait_status);
  const char* name = sigabbrev_np(signal);
  result.reason = Reason::kSignalled;
  result.signal = signal;
  result.exit_code = 128 + signal;
  result.message = name != nullptr ? format("killed by SIG{}", name) : format("killed by signal {}", signal);
}

Supervised supervise(launch::Sandbox& sandbox, front::Stdio& stdio, const Limits& limits, const SuperviseOptions& options) {
  return Supervisor(sandbox, stdio, limits, options).run();
}

}  // namespace belljar::runtime
