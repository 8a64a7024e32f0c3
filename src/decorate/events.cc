// with_events: what goes through a sandbox, and what it uses, as events.
//
// Two sources of events: calls that pass through, told by the caller's thread, and samples, told by
// a thread of the decorator. The sampler is begun after start() succeeded and ended before stop(),
// so that it never asks a sandbox that is gone. It is ended by a cancel token as well as by its
// flag, because a call to a remote service may be under way.
//
// Processor use is the difference of two readings over the time between them, so the first sample
// comes after one interval. The walk of the workspace goes on where it was at each sample and takes
// a tenth of the time at most; `disk` is what the last complete walk found. An alert is raised at
// its threshold and taken back kBack points below it. Without that gap a value at the threshold
// would raise one at each sample.
//
// In a forked child the thread does not exist. The child abandons the sampler without a join, and
// what it begins from then on is its own.
#include "belljar/events.h"

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include "base/owner.h"
#include "base/patience.h"
#include "base/thread.h"
#include "base/unique_fd.h"
#include "belljar/cancel.h"
#include "belljar/command.h"
#include "belljar/decorators.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/process.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "belljar/units.h"
#include "decorate/call.h"
#include "kernel/disk_usage.h"

namespace belljar {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr milliseconds kShortest{10};
constexpr double kBack = 5;     // points below the threshold before an alert can be raised again
constexpr int kDiskShare = 10;  // the walk takes at most a tenth of the time

double percent(std::uint64_t part, Bytes whole) {
  return whole.count == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole.count);
}

// What all parts of one decorated sandbox tell, and where.
class Teller {
 public:
  Teller(std::shared_ptr<EventSink> sink, std::string sandbox) : sink_(std::move(sink)), sandbox_(std::move(sandbox)) {}

  template <class Body>
  Event tell(Body body) {
    Event event;
    event.sandbox = sandbox_;
    event.body = std::move(body);
    sink_->publish(event);
    return event;
  }

  void tell_result(const std::string& command, const ExecResult& result) {
    for (const Violation& violation : result.violations) tell(ViolationEvent{violation});
    for (const EgressRecord& record : result.egress) {
      received_ += record.bytes_received;
      sent_ += record.bytes_sent;
      tell(EgressEvent{record});
    }
    tell(ExecutionEvent{command, result.duration, result.exit_code, result.reason, result.out.total + result.err.total, ""});
  }
  // Of a command whose handle went before anybody waited for its end: it was ended, or runs on.
  void tell_unread(const std::string& command, microseconds duration, bool detached) {
    tell(ExecutionEvent{command, duration, detached ? 0 : 128 + SIGTERM, detached ? Reason::kExited : Reason::kCancelled, 0, ""});
  }
  void tell_failure(const std::string& command, const Error& error) {
    tell(ExecutionEvent{command, {}, error.exit_code(), Reason::kStartFailed, 0, error.line()});
  }

  std::uint64_t received() const noexcept { return received_; }
  std::uint64_t sent() const noexcept { return sent_; }

 private:
  std::shared_ptr<EventSink> sink_;
  std::string sandbox_;
  std::atomic<std::uint64_t> received_{0}, sent_{0};
};

// Measures now and then, on a thread of its own.
class Sampler {
 public:
  Sampler(Sandbox& sandbox, Teller& teller, const EventOptions& options)
      : sandbox_(sandbox),
        teller_(teller),
        options_(options),
        end_(CancelToken::create().value_or(CancelToken())),
        thread_(start_thread([this] { run(); })) {}
  ~Sampler() {
    end_.cancel();  // a service that does not answer is not waited for
    {
      const std::lock_guard guard(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

 private:
  void run() {
    const milliseconds every = std::max(bounded(*options_.sample_every), kShortest);
    if (options_.measure_disk) workspace_ = UniqueFd(::open(sandbox_.workspace().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    auto before = Clock::now();
    microseconds cpu_before{0};
    if (const auto stats = sandbox_.stats({.cancel = end_})) cpu_before = stats->cpu;
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, every, [this] { return stop_; })) {
      lock.unlock();
      measure_disk(every);
      if (const auto stats = sandbox_.stats({.cancel = end_})) {
        const auto now = Clock::now();
        const double elapsed = std::chrono::duration<double>(now - before).count();
        const double used = std::chrono::duration<double>(std::max(stats->cpu - cpu_before, microseconds(0))).count();
        before = now;
        cpu_before = stats->cpu;
        sample(*stats, elapsed > 0 ? 100 * used / elapsed / std::max(options_.alerts.cpus, 0.001) : 0);
      }
      lock.lock();
    }
  }

  void sample(const SandboxStats& stats, double cpu) {
    const AlertRules& rules = options_.alerts;
    ResourceEvent event;
    event.cpu_percent = cpu;
    event.memory = stats.memory;
    if (rules.memory_limit) event.memory_percent = percent(stats.memory.count, *rules.memory_limit);
    event.disk = disk_;
    if (disk_ && rules.disk_limit) event.disk_percent = percent(disk_->count, *rules.disk_limit);
    event.network_in = teller_.received();
    event.network_out = teller_.sent();
    event.processes = stats.processes;
    teller_.tell(event);
    judge("cpu", cpu, rules.cpu, cpu_raised_);
    judge("memory", event.memory_percent, rules.memory, memory_raised_);
    judge("disk", event.disk_percent, rules.disk, disk_raised_);
  }

  void judge(const char* resource, std::optional<double> value, std::optional<double> threshold, bool& raised) {
    if (!value || !threshold) return;
    const bool over = *value >= *threshold;
    if (raised ? *value > *threshold - kBack : !over) return;
    raised = !raised;
    const Event event = teller_.tell(AlertEvent{resource, *value, *threshold, raised});
    if (!options_.on_alert) return;
    try {
      options_.on_alert(event);
    } catch (...) {  // this thread is ours: nobody could catch it, and the process would end
    }
  }

  // Goes on with the walk where it was; disk_ is of the last one that came to its end.
  void measure_disk(milliseconds every) {
    if (!workspace_.valid()) return;
    if (!scan_) scan_.emplace(workspace_.get());
    if (!scan_->advance(std::chrono::duration_cast<microseconds>(every) / kDiskShare)) return;
    disk_ = scan_->result().used;
    scan_.reset();
  }

  Sandbox& sandbox_;
  Teller& teller_;
  const EventOptions& options_;
  const CancelToken end_;
  UniqueFd workspace_;
  std::optional<kernel::DiskScan> scan_;
  std::optional<Bytes> disk_;
  bool cpu_raised_ = false, memory_raised_ = false, disk_raised_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;   // guarded by mutex_
  std::thread thread_;  // last: it uses all of the above
};

class ToldProcess final : public decorate::ForwardedProcess {
 public:
  ToldProcess(std::unique_ptr<Process> inner, std::shared_ptr<Teller> teller, std::string command)
      : ForwardedProcess(std::move(inner)), teller_(std::move(teller)), command_(std::move(command)) {}
  ~ToldProcess() override {
    if (!is_ours()) return;
    try {
      std::ignore = ToldProcess::wait(milliseconds(0));
      end();
      if (!told_.exchange(true))
        teller_->tell_unread(command_, std::chrono::duration_cast<microseconds>(Clock::now() - start_), detached());
    } catch (...) {  // a callback that throws must not end the program from a destructor
    }
  }
  Result<std::optional<ExecResult>> wait(std::optional<milliseconds> patience) override {
    try {
      auto result = inner().wait(patience);
      if (result && *result && !told_.exchange(true)) teller_->tell_result(command_, **result);
      return result;
    } catch (...) {
      if (!told_.exchange(true)) teller_->tell_failure(command_, decorate::callback_threw());
      throw;
    }
  }

 private:
  std::shared_ptr<Teller> teller_;
  std::string command_;
  Clock::time_point start_ = Clock::now();
  std::atomic<bool> told_{false};
};

class Watched final : public SandboxDecorator {
 public:
  Watched(SandboxPtr inside, std::shared_ptr<EventSink> sink, EventOptions options)
      : SandboxDecorator(std::move(inside)),
        teller_(std::make_shared<Teller>(std::move(sink), inner().id())),
        options_(std::move(options)) {}
  ~Watched() override { end_samples(); }

  Result<void> start(const CallOptions& options) override {
    auto started = inner().start(options);
    if (started) started = begin_samples();
    if (started) {
      started_.take();
      teller_->tell(LifecycleEvent{Lifecycle::kStarted, ""});
    } else {
      teller_->tell(LifecycleEvent{Lifecycle::kStartFailed, started.error().line()});
    }
    return started;
  }
  Result<void> stop(const CallOptions& options) override {
    BELLJAR_CHECK(options.check("cannot stop the sandbox"));  // it is measured on
    end_samples();
    auto stopped = inner().stop(options);
    // What a forked child is refused stops nothing: the parent's sandbox runs on.
    if (stopped || started_.is_this()) teller_->tell(LifecycleEvent{Lifecycle::kStopped, stopped ? "" : stopped.error().line()});
    return stopped;
  }
  Result<void> set_network_rules(const NetworkRules& rules) override {
    auto changed = inner().set_network_rules(rules);
    if (changed) teller_->tell(LifecycleEvent{Lifecycle::kRulesChanged, decorate::text_of(rules)});
    return changed;
  }
  using Sandbox::exec;
  Result<ExecResult> exec(const Command& command, const ExecOptions& options) override {
    auto result = [&] {
      try {
        return inner().exec(command, options);
      } catch (...) {
        teller_->tell_failure(decorate::text_of(command), decorate::callback_threw());
        throw;
      }
    }();
    if (result) teller_->tell_result(decorate::text_of(command), *result);
    else teller_->tell_failure(decorate::text_of(command), result.error());
    return result;
  }
  Result<std::unique_ptr<Process>> spawn(const Command& command, const SpawnOptions& options) override {
    auto process = inner().spawn(command, options);
    if (process)
      return std::unique_ptr<Process>(std::make_unique<ToldProcess>(*std::move(process), teller_, decorate::text_of(command)));
    teller_->tell_failure(decorate::text_of(command), process.error());
    return process;
  }

 private:
  Result<void> begin_samples() {
    try {
      end_samples();
      const std::lock_guard guard(mutex_);
      if (options_.sample_every) sampler_ = std::make_unique<Sampler>(inner(), *teller_, options_);
      return {};
    } catch (const std::system_error& failed) {
      (void)inner().stop();
      return no_thread(failed, "cannot sample what the sandbox uses");
    }
  }
  // In a forked child the sampler is the parent's, and what begins here is the child's own.
  void end_samples() {
    if (!sampling_.is_this()) {
      abandon(sampler_);
      sampling_.take();
      return;
    }
    const std::lock_guard guard(mutex_);
    sampler_.reset();
  }

  std::shared_ptr<Teller> teller_;
  const EventOptions options_;
  OwningProcess started_;   // who started it last
  OwningProcess sampling_;  // whose thread the sampler has
  std::mutex mutex_;
  std::unique_ptr<Sampler> sampler_;  // guarded by mutex_
};

}  // namespace

std::shared_ptr<Sandbox> with_events(std::shared_ptr<Sandbox> inner, std::shared_ptr<EventSink> sink, EventOptions options) {
  return std::make_shared<Watched>(std::move(inner), std::move(sink), std::move(options));
}

}  // namespace belljar
