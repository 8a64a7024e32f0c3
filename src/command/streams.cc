#include "command/streams.h"

#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "command/capture.h"
#include "command/ending.h"

namespace belljar::command {

std::optional<Cause> Streams::take(Stream stream, std::string_view bytes) {
  Capture& capture = captures_[index(stream)];
  capture.append(bytes);
  if (callback(stream) && !thrown_ && !muted_.load()) {
    try {
      callback(stream)(bytes);
    } catch (...) {
      thrown_ = std::current_exception();
      return Cause{Reason::kCancelled, "a callback of the caller failed"};
    }
  }
  if (!capture.over() || request_.limits.output_action != OutputAction::kKill) return {};
  return Cause{Reason::kOutput, format("the output exceeded the limit of {} bytes", request_.output_bytes)};
}

void Streams::finish(ExecResult& result) {
  result.out = std::move(captures_[0]).finish();
  result.err = std::move(captures_[1]).finish();
  if (result.out.omitted > 0 || result.err.omitted > 0) result.limits_hit.emplace_back("output");
}

}  // namespace belljar::command
