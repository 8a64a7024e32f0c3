// A sandbox's id, and the errors that say why it cannot start or is not healthy.
#pragma once

#include <string>

#include "belljar/cancel.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::session {

inline constexpr char kNoStart[] = "cannot start the sandbox";
// "sb-PID-N"
std::string next_id();
// Asked before the start of a sandbox. Errors: kCanceled.
Result<void> check_not_cancelled(const CancelToken& cancel);
// The error of a start that its options ended: it says which of them did, and what is left to do. Other errors stay as they are.
Error start_error(const Error& error, const CallOptions& options);
// The error of a health(): whatever `why` is, the sandbox is not healthy; but where the caller ended the call, nothing is known.
Error not_healthy(const Error& why);

}  // namespace belljar::session
