#include "belljar/exec_result.h"

#include <string_view>

namespace belljar {

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
