// Events as a line and as JSON.
#include <cmath>

#include "base/format.h"
#include "base/rfc3339.h"
#include "belljar/audit.h"
#include "belljar/events.h"
#include "belljar/violation_text.h"

namespace belljar {
namespace {

std::string_view to_string_of(Lifecycle what) {
  if (what == Lifecycle::kRulesChanged) return "rules_changed";
  return what == Lifecycle::kStarted ? "started" : what == Lifecycle::kStopped ? "stopped" : "start_failed";
}

std::int64_t integer(std::uint64_t value) { return static_cast<std::int64_t>(value); }
// Two digits behind the point are enough of a percentage; whole hundredths need no floating point in JSON.
std::int64_t hundredths(double percent) { return std::llround(percent * 100); }

struct Line {
  std::string operator()(const ExecutionEvent& event) const {
    if (!event.error.empty()) return format("{} was not executed: {}", quoted(event.command), escaped(event.error));
    return format("{} exit_code={} reason={} duration={}us bytes={}", quoted(event.command), event.exit_code,
                  belljar::to_string(event.reason), event.duration.count(), event.output_bytes);
  }
  std::string operator()(const ResourceEvent& event) const {
    std::string text = format("cpu={:.1f}% memory={}", event.cpu_percent, event.memory.count);
    if (event.memory_percent) text += format(" ({:.1f}%)", *event.memory_percent);
    if (event.disk) text += format(" disk={}", event.disk->count);
    if (event.disk_percent) text += format(" ({:.1f}%)", *event.disk_percent);
    return text + format(" network_in={} network_out={} processes={}", event.network_in, event.network_out, event.processes);
  }
  std::string operator()(const AlertEvent& event) const {
    return format("{} at {:.1f}% {} its threshold of {:.1f}%", event.resource, event.value, event.raised ? "is over" : "is below",
                  event.threshold);
  }
  std::string operator()(const ViolationEvent& event) const { return "refused: " + belljar::to_line(event.violation); }
  std::string operator()(const EgressEvent& event) const {
    const EgressRecord& record = event.record;
    return format("{} {}:{} {} sent={} received={}", record.protocol, escaped(record.host), record.port, escaped(record.reason),
                  record.bytes_sent, record.bytes_received);
  }
  std::string operator()(const LifecycleEvent& event) const {
    return format("{}{}{}", to_string_of(event.what), event.detail.empty() ? "" : ": ", escaped(event.detail));
  }
};

struct Fields {
  AuditFields operator()(const ExecutionEvent& event) const {
    AuditFields fields;
    fields.text("command", event.command).number("duration_us", event.duration.count()).number("exit_code", event.exit_code);
    fields.text("reason", belljar::to_string(event.reason)).number("output_bytes", integer(event.output_bytes));
    if (!event.error.empty()) fields.text("error", event.error);
    return fields;
  }
  AuditFields operator()(const ResourceEvent& event) const {
    AuditFields fields;
    fields.number("cpu_percent_x100", hundredths(event.cpu_percent)).number("memory_bytes", integer(event.memory.count));
    if (event.memory_percent) fields.number("memory_percent_x100", hundredths(*event.memory_percent));
    if (event.disk) fields.number("disk_bytes", integer(event.disk->count));
    if (event.disk_percent) fields.number("disk_percent_x100", hundredths(*event.disk_percent));
    return fields.number("network_in", integer(event.network_in))
        .number("network_out", integer(event.network_out))
        .number("processes", integer(event.processes));
  }
  AuditFields operator()(const AlertEvent& event) const {
    return AuditFields()
        .text("resource", event.resource)
        .number("value_x100", hundredths(event.value))
        .number("threshold_x100", hundredths(event.threshold))
        .boolean("raised", event.raised);
  }
  AuditFields operator()(const ViolationEvent& event) const {
    const Violation& violation = event.violation;
    return AuditFields()
        .text("operation", violation.operation)
        .text("target", violation.target)
        .text("rule", violation.rule)
        .text("program", violation.program)
        .number("errno", violation.errnum)
        .number("count", integer(violation.count));
  }
  AuditFields operator()(const EgressEvent& event) const {
    const EgressRecord& record = event.record;
    return AuditFields()
        .text("protocol", record.protocol)
        .text("host", record.host)
        .number("port", record.port)
        .boolean("allowed", record.allowed)
        .text("why", record.reason)
        .number("bytes_sent", integer(record.bytes_sent))
        .number("bytes_received", integer(record.bytes_received));
  }
  AuditFields operator()(const LifecycleEvent& event) const {
    return AuditFields().text("what", to_string_of(event.what)).text("detail", event.detail);
  }
};

}  // namespace

std::string_view to_string(EventKind kind) noexcept {
  constexpr std::string_view kNames[] = {"execution", "resource", "alert", "violation", "egress", "lifecycle"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string to_line(const Event& event) {
  return format("{} {} {}: {}", rfc3339(event.time), escaped(event.sandbox), to_string(event.kind()),
                std::visit(Line(), event.body));
}

std::string to_json(const Event& event) {
  const AuditFields about = AuditFields()
                                .number("sequence", integer(event.sequence))
                                .text("time", rfc3339(event.time))
                                .text("sandbox", event.sandbox)
                                .text("kind", to_string(event.kind()));
  const std::string front = about.json();
  return front.substr(0, front.size() - 1) + ",\"data\":" + std::visit(Fields(), event.body).json() + "}";
}

}  // namespace belljar
