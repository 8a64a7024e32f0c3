// What came of a command. Values; safe from any thread. DESIGN section 8.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/policy.h"

namespace belljar {

enum class Reason { kExited, kSignalled, kTimeout, kIdle, kMemory, kPids, kDisk, kOutput, kCancelled, kStartFailed };
std::string_view to_string(Reason reason) noexcept;

enum class Enforced { kFull, kPartial, kNone };
std::string_view to_string(Enforced enforced) noexcept;

// One clause of the enforcement report: what the policy asks, what holds it here, how far.
struct EnforcementClause {
  std::string clause;     // stable dotted name: "filesystem.secrets", "limits.memory"
  std::string asked;      // "hide 23 paths"
  std::string mechanism;  // "overlay mask + Landlock"
  Enforced enforced = Enforced::kFull;
  std::string detail;  // what is missing and why; empty when full
  // A default that may read `none` without failing the start; `require` makes it fatal. False: none is fatal unless accepted.
  bool best_effort = false;
  bool operator==(const EnforcementClause&) const = default;
};
using EnforcementReport = std::vector<EnforcementClause>;

// An act the policy refused, from the mechanism that refused it.
struct Violation {
  std::chrono::system_clock::time_point time;
  std::uint64_t sequence = 0;
  int pid = 0;            // as seen inside
  std::string program;    // comm of the caller
  std::string operation;  // "unix-connect", ...
  std::string target;     // path or host:port, raw bytes
  std::string rule;       // the key that refused it
  Origin origin;
  int errnum = 0;       // what the caller got
  std::string allowed;  // what is allowed instead, how to ask
  bool operator==(const Violation&) const = default;
};

struct Usage {
  std::chrono::microseconds cpu_user{0};
  std::chrono::microseconds cpu_system{0};
  std::optional<Bytes> peak_memory;
  bool operator==(const Usage&) const = default;
};

// Captured output. `bytes` is what was kept: valid UTF-8 boundaries are never cut; `omitted` counts what was dropped.
struct Output {
  std::string bytes;
  std::uint64_t total = 0;
  std::uint64_t omitted = 0;
  bool operator==(const Output&) const = default;
};

struct ExecResult {
  int exit_code = 0;  // the program's own; 124 timed out; 128+n signal n; 125, 126, 127 could not start
  std::optional<int> signal;
  Reason reason = Reason::kExited;
  std::string message;                  // one sentence when reason is not kExited
  std::vector<std::string> limits_hit;  // "memory", "pids", "open_files", ...; also when the command survived it
  Output out;
  Output err;
  std::chrono::microseconds duration{0};
  Usage usage;
  std::vector<Violation> violations;
  std::uint64_t violations_dropped = 0;
  EnforcementReport enforcement;
};

}  // namespace belljar
