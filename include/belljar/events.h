// What happens in sandboxes, as it happens: commands, resources, alerts, refusals, egress, lifecycle.
//
//   auto bus = std::make_shared<EventBus>();
//   auto monitor = bus->subscribe({.kinds = {EventKind::kExecution, EventKind::kAlert}});
//   SandboxPtr watched = with_events(sandbox, bus, {.sample_every = 1s, .alerts = {.memory_limit = 2_GiB}});
//   while (auto event = monitor->next(1s)) log(to_line(*event));
//
// Publishing never blocks: a subscriber that is slow loses its oldest events, and lost() says how many.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "belljar/exec_result.h"
#include "belljar/sandbox.h"
#include "belljar/units.h"

namespace belljar {

struct ExecutionEvent {
  std::string command;  // shell text, or argv joined by spaces
  std::chrono::microseconds duration{0};
  int exit_code = 0;
  Reason reason = Reason::kExited;  // spawned, and nobody waited for its end: kCancelled; detached: kExited, 0
  std::uint64_t output_bytes = 0;   // of both streams, dropped ones included
  std::string error;                // not empty: it was not executed, and this is the Error's line
};

// A sample. Percentages are of the limits in AlertRules; unset where there is none.
struct ResourceEvent {
  double cpu_percent = 0;  // since the sample before, 100 is one processor (or AlertRules::cpus of them)
  Bytes memory;
  std::optional<double> memory_percent;
  std::optional<Bytes> disk;  // of the workspace, when it was measured
  std::optional<double> disk_percent;
  std::uint64_t network_in = 0, network_out = 0;  // bytes through the proxy by commands that have ended, since the start
  std::uint64_t processes = 0;
};

// A threshold was crossed upwards (raised) or the value came back below it.
struct AlertEvent {
  std::string resource;  // "cpu", "memory", "disk"
  double value = 0;      // percent
  double threshold = 0;
  bool raised = true;
};

struct ViolationEvent {
  Violation violation;
};
struct EgressEvent {
  EgressRecord record;
};

enum class Lifecycle { kStarted, kStartFailed, kStopped, kRulesChanged };
struct LifecycleEvent {
  Lifecycle what = Lifecycle::kStarted;
  std::string detail;  // the Error's line; kRulesChanged: the rules for hosts
};

// In the order of the alternatives of Event::body.
enum class EventKind { kExecution, kResource, kAlert, kViolation, kEgress, kLifecycle };
std::string_view to_string(EventKind kind) noexcept;

struct Event {
  std::uint64_t sequence = 0;  // of this bus, from 0
  std::chrono::system_clock::time_point time;
  std::string sandbox;  // its id
  std::variant<ExecutionEvent, ResourceEvent, AlertEvent, ViolationEvent, EgressEvent, LifecycleEvent> body;
  EventKind kind() const noexcept { return static_cast<EventKind>(body.index()); }
};
// One line for people, what a sandbox wrote escaped; and one JSON object on a line.
std::string to_line(const Event& event);
std::string to_json(const Event& event);

class EventSink {
 public:
  EventSink() = default;
  EventSink(const EventSink&) = delete;
  EventSink& operator=(const EventSink&) = delete;
  virtual ~EventSink() = default;
  // Never blocks. `sequence` and `time` are the sink's to set. Safe from any thread.
  virtual void publish(Event event) noexcept = 0;
};

struct EventFilter {
  std::vector<EventKind> kinds;            // empty: all
  std::string sandbox;                     // empty: all
  std::function<bool(const Event&)> also;  // on the publisher's thread: fast, and it does not throw
  std::size_t capacity = 1024;             // events that wait; at least 1
};

// Safe from any thread. Ends with its last handle.
class Subscription {
 public:
  // The oldest that waits; nullopt when there is none after `patience`, or never will be.
  std::optional<Event> next(std::chrono::milliseconds patience);
  // How many were dropped because nobody took them in time.
  std::uint64_t lost() const;
  ~Subscription();

 private:
  friend class EventBus;
  struct State;
  explicit Subscription(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

class EventBus final : public EventSink {
 public:
  EventBus();
  ~EventBus() override;
  std::shared_ptr<Subscription> subscribe(EventFilter filter = {});
  void publish(Event event) noexcept override;

 private:
  std::mutex mutex_;
  std::uint64_t sequence_ = 0;                                     // guarded by mutex_
  std::vector<std::weak_ptr<Subscription::State>> subscriptions_;  // guarded by mutex_
};

// Percentages at which an alert is raised; unset: never. It is raised once, and again only after the value came 5 points below.
struct AlertRules {
  std::optional<double> cpu = 80, memory = 90, disk = 95;
  double cpus = 1;                                // 100 % of CPU
  std::optional<Bytes> memory_limit, disk_limit;  // 100 %; unset: no such percentage, no such alert
};

struct EventOptions {
  // Unset: no samples and no alerts. At least 10 ms.
  std::optional<std::chrono::milliseconds> sample_every;
  // Measures the workspace on the host (a walk of its tree, on the sampling thread, at most a tenth of the time).
  bool measure_disk = false;
  AlertRules alerts;
  // Called for each alert on the sampling thread, after it was published. It must not call stop() on the sandbox, which waits for
  // that thread. For webhooks: belljar/webhook.h, which does not block. What it throws is dropped: the alert was published.
  std::function<void(const Event&)> on_alert;
};

// A decorator (decorators.h): tells the sink of everything that goes through it. Start and stop through it begin and end the
// sampling.
std::shared_ptr<Sandbox> with_events(std::shared_ptr<Sandbox> inner, std::shared_ptr<EventSink> sink, EventOptions options = {});

}  // namespace belljar
