#pragma once

#include <chrono>

#include "belljar/error.h"
#include "belljar/result.h"
#include "http/client.h"

namespace belljar::remote {

// The code for a request that was sent once and whose answer did not come, or not whole. The transport calls an answer that is
// larger than we read kResourceExhausted, which is a service's word for what it refused unread; here something may have been made,
// or have begun.
Code code_unheard(const Error& failed) noexcept;

// The code that most services mean by an HTTP status.
Code code_of_status(long status) noexcept;

// kCanceled, `cancel_fd` (-1: none) became readable meanwhile.
Result<void> wait_for(std::chrono::milliseconds time, int cancel_fd);

// Sleeps before try number `turn` (from 1) is repeated: as long as the service asks, else `turn` seconds. False, at once:
// that is not in the time that is left. kCanceled as above.
Result<bool> wait_before_retry(int turn, const http::Reply& reply, http::Clock::time_point deadline, int cancel_fd);

}  // namespace belljar::remote
