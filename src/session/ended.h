// What was never started, since its caller had cancelled it already, and what reads no more input.
#pragma once

#include <memory>

#include "belljar/cancel.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/process.h"
#include "belljar/result.h"

namespace belljar::session {

ExecResult cancelled_before_start();
// Its handle: it has ended.
std::unique_ptr<Process> make_cancelled_process();
inline constexpr char kNoStart[] = "cannot start the sandbox";
// Before the start of a sandbox. Errors: kCanceled.
Result<void> check_not_cancelled(const CancelToken& cancel);
// Of a start that its options ended: which of them did, and with what is left to do. Others as they are.
Error start_error(const Error& error, const CallOptions& options);
// Of a health(): whatever `why` is, it is not healthy; but where the caller ended the call, nothing is known.
Error not_healthy(const Error& why);
// Of a write to a command's stdin.
Error no_input(const char* reason);

}  // namespace belljar::session
