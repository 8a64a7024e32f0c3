// What the commands share: finding a sandbox, asking its keeper, printing.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "belljar/result.h"
#include "keeper/directory.h"
#include "keeper/wire.h"

namespace belljar::cli {

// A running sandbox. Errors: as Directory::find; kFailedPrecondition, it does not run any more, and why. One whose keeper was
// killed is put away.
Result<keeper::Entry> find_running(const std::string& text);

// A request as keepers take it.
keeper::Json request(const char* verb);
// The one answer to a request; an `error` in it is our Error. Errors: kUnavailable, kDeadlineExceeded.
Result<keeper::Json> ask(const keeper::Entry& entry, const keeper::Json& request, std::chrono::milliseconds patience);
// The next message of an open connection, likewise.
Result<keeper::Received> next_answer(keeper::Channel& channel, std::chrono::milliseconds patience);

// "12 s", "3 min", "5 h", "2 d".
std::string short_time(std::int64_t milliseconds);
// "17 B", "10.4 KiB", "3.0 MiB".
std::string short_size(double bytes);
std::int64_t now_ms();

}  // namespace belljar::cli
