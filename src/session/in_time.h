// A call that may not wait longer than its options say: for a lock, and for what it does itself.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "belljar/cancel.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::session {

// Whether a call of a file may go on: "cannot DOING `path`" where it may not. Errors: as CallOptions::check.
Result<void> check_in_time(const CallOptions& options, std::string_view doing, const std::string& path);

// Locks `mutex` within the call's time: its holder may take long (a start, an engine that does not answer). Errors: as
// CallOptions::check, of `what`.
Result<std::unique_lock<std::mutex>> lock_in_time(std::mutex& mutex, const CallOptions& options, std::string_view what);

// The error of a call that its caller ended while a service or an engine was doing it: why it is over, and what may be left.
Error in_vain(const Error& over, const std::string& left, std::string next);

}  // namespace belljar::session
