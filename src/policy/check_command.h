// What every backend refuses of a command, also one that executes nothing.
#pragma once

#include <chrono>
#include <optional>

#include "belljar/command.h"
#include "belljar/result.h"

namespace belljar::policy {

// Errors: kInvalidArgument: a NUL byte, no command, a variable without a name.
Result<void> check_command(const Command& command);
// Errors: kInvalidArgument, it is not positive.
Result<void> check_timeout(std::optional<std::chrono::milliseconds> timeout);

}  // namespace belljar::policy
