#include "belljar/error.h"

#include <cstring>
#include <string>
#include <string_view>

#include "base/format.h"

namespace belljar {

std::string_view to_string(Code code) noexcept {
  switch (code) {
    case Code::kCanceled:
      return "canceled";
    case Code::kUnknown:
      return "unknown";
    case Code::kInvalidArgument:
      return "invalid_argument";
    case Code::kDeadlineExceeded:
      return "deadline_exceeded";
    case Code::kNotFound:
      return "not_found";
    case Code::kAlreadyExists:
      return "already_exists";
    case Code::kPermissionDenied:
      return "permission_denied";
    case Code::kResourceExhausted:
      return "resource_exhausted";
    case Code::kFailedPrecondition:
      return "failed_precondition";
    case Code::kAborted:
      return "aborted";
    case Code::kOutOfRange:
      return "out_of_range";
    case Code::kUnimplemented:
      return "unimplemented";
    case Code::kInternal:
      return "internal";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kDataLoss:
      return "data_loss";
    case Code::kUnauthenticated:
      return "unauthenticated";
  }
  return "unknown";
}

std::string Error::line() const {
  std::string text = what_;
  if (errno_ != 0) text += format(": {} ({})", std::strerror(errno_), call_);
  if (!reason_.empty()) text += "; " + reason_;
  if (!next_.empty()) text += "; next: " + next_;
  return text;
}

}  // namespace belljar
