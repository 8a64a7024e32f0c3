// What a sandbox says of itself: its id, and why it cannot start or is not healthy.
#pragma once

#include <string>

#include "belljar/cancel.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::session {

// "sb-PID-N"
std::string next_id();
// Before the start of a sandbox. Errors: kCanceled.
Result<void> check_not_cancelled(const CancelToken& cancel);
// Of a health(): whatever `why` is, it is not healthy; but where the caller ended the call, nothing is known.
Error not_healthy(const Error& why);

}  // namespace belljar::session
