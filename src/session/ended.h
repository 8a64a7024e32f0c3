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
// Before the start of a sandbox. Errors: kCanceled.
Result<void> check_not_cancelled(const CancelToken& cancel);
// Of a start that its options ended: which of them did, and with what is left to do. Others as they are.
Error start_error(const Error& error, const CallOptions& options);
// Of a health(): whatever `why` is, it is not healthy; but where the caller ended the call, nothing is known.
Error not_healthy(const Error& why);

}  // namespace belljar::session
