#include "belljar/outcome.h"

#include "base/format.h"
#include "belljar/units.h"

namespace belljar {
namespace {

constexpr std::size_t kShown = 2000;

struct Words {
  const char *timed_out, *limit, *execution_failed, *command_failed, *executed;
};
constexpr Words kWords[] = {{"command timed out", "resource limit", "execution failed", "command failed", "sandbox executed"},
                            {"命令超时", "资源限制", "执行失败", "命令失败", "沙箱执行"}};

const Words& words(Language language) { return kWords[static_cast<std::size_t>(language)]; }

std::string why(const Result<ExecResult>& result) {
  return escaped(!result ? result.error().line() : !result->message.empty() ? result->message : to_string(result->reason));
}

}  // namespace

std::string_view to_string(Outcome outcome) noexcept {
  constexpr std::string_view kNames[] = {"succeeded", "command_failed", "timed_out", "resource_limit", "execution_failed"};
  return kNames[static_cast<std::size_t>(outcome)];
}

Outcome outcome_of(const Result<ExecResult>& result) noexcept {
  if (!result) return Outcome::kExecutionFailed;
  switch (result->reason) {
    case Reason::kExited:
      return result->exit_code == 0 ? Outcome::kSucceeded : Outcome::kCommandFailed;
    case Reason::kSignalled:
      return Outcome::kCommandFailed;
    case Reason::kTimeout:
    case Reason::kIdle:
      return Outcome::kTimedOut;
    case Reason::kMemory:
    case Reason::kPids:
    case Reason::kDisk:
    case Reason::kOutput:
      return Outcome::kResourceLimit;
    case Reason::kCancelled:
    case Reason::kStartFailed:
      return Outcome::kExecutionFailed;
  }
  return Outcome::kExecutionFailed;
}

std::string outcome_text(const Result<ExecResult>& result, Language language) {
  switch (outcome_of(result)) {
    case Outcome::kSucceeded:
      return "";
    case Outcome::kTimedOut:
      return words(language).timed_out;
    case Outcome::kResourceLimit:
      return words(language).limit;
    case Outcome::kExecutionFailed:
      return format("{}: {}", words(language).execution_failed, why(result));
    case Outcome::kCommandFailed:
      return format("{}: {}", words(language).command_failed, escaped(std::string_view(result->err.bytes).substr(0, kShown)));
  }
  return "";
}

std::string execution_text(const ExecutionEvent& event, Language language) {
  return format("{}: Command={} Duration={} ExitCode={}", words(language).executed, escaped(event.command),
                to_string(std::chrono::duration_cast<std::chrono::milliseconds>(event.duration)), event.exit_code);
}

}  // namespace belljar
