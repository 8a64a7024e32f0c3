// The names of outcomes: in JSON, in messages, on the wire.
#include "belljar/exec_result.h"

#include <charconv>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/format.h"

namespace belljar {
namespace {

constexpr std::string_view kTimeoutBegins = "command timeout after ", kTimeoutEnds = "ms";

}  // namespace

std::string timeout_message(std::chrono::milliseconds timeout) {
  return format("{}{}{}", kTimeoutBegins, timeout.count(), kTimeoutEnds);
}

std::optional<std::chrono::milliseconds> timeout_of(const ExecResult& result) {
  std::string_view text = result.message;
  if (result.reason != Reason::kTimeout || !text.starts_with(kTimeoutBegins)) return {};
  text.remove_prefix(kTimeoutBegins.size());
  std::chrono::milliseconds::rep count = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (failed != std::errc() || !std::string_view(end, text.data() + text.size()).starts_with(kTimeoutEnds)) return {};
  return std::chrono::milliseconds(count);
}

std::string_view to_string(Reason reason) noexcept {
  switch (reason) {
    case Reason::kExited:
      return "exited";
    case Reason::kSignalled:
      return "signalled";
    case Reason::kTimeout:
      return "timeout";
    case Reason::kIdle:
      return "idle";
    case Reason::kMemory:
      return "memory";
    case Reason::kPids:
      return "pids";
    case Reason::kDisk:
      return "disk";
    case Reason::kOutput:
      return "output";
    case Reason::kCancelled:
      return "cancelled";
    case Reason::kStartFailed:
      return "start_failed";
  }
  return "unknown";
}

std::string_view to_string(Enforced enforced) noexcept {
  switch (enforced) {
    case Enforced::kFull:
      return "full";
    case Enforced::kPartial:
      return "partial";
    case Enforced::kNone:
      return "none";
  }
  return "unknown";
}

}  // namespace belljar
