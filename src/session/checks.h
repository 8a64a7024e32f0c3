// What exec and spawn ask of their arguments, and the defaults of what was left out; the same on every backend of this room.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "belljar/sandbox.h"
#include "policy/check_command.h"

namespace belljar::session {

using policy::check_command;
using policy::check_timeout;

// For a backend that has no proxy of ours. Errors: kUnimplemented, hosts are to be opened for one command.
Result<void> check_no_hosts(const std::vector<std::string>& allowed_domains);

std::chrono::milliseconds exec_timeout(const ExecOptions& options, const Limits& limits);
std::optional<std::chrono::milliseconds> spawn_timeout(const SpawnOptions& options, const Limits& limits);
std::uint64_t kept_output(std::optional<std::uint64_t> asked, const Limits& limits);

// The row of the report that the above is.
EnforcementClause timeout_clause(const Limits& limits);

// "sb-PID-N"
std::string next_id();

}  // namespace belljar::session
