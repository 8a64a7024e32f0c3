// What came of a command. Values; safe from any thread.
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

// One clause of the enforcement report: what the policy asks for, which mechanism enforces it here, and how far.
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

// An act the policy refused, from the mechanism that refused it: never guessed from output, never made of an ordinary failure (a
// missing file is none). Text that came from inside (program, target) is raw bytes: escape it before you show it
// (belljar/violation_text.h does).
//
// Operations: "read", "write", "create", "mkdir", "rename", "delete" ... (of the path that is the target), "unix-connect",
// "unix-listen", "connect" (target host:port), "udp-connect" (a datagram socket), "bind", "listen" (of TCP ports), "egress" (the
// proxy's refusal, target host:port, or a name that was looked up), "socket", "system-call" (target: its name), "limit" (target:
// the limit's name).
struct Violation {
  std::chrono::system_clock::time_point time;
  std::uint64_t sequence = 0;  // of the acts of one run, from 0; a gap: acts that were only counted
  int pid = 0;                 // as seen inside; 0 when unknown or the whole sandbox
  std::string program;         // comm of the caller, which the caller chooses itself
  std::string operation;       // above
  std::string target;          // path or host:port, raw bytes
  std::string rule;            // the policy key that refused it
  Origin origin;               // where that key got its value: layer, file and line
  int errnum = 0;              // what the caller got; 0 when it got no error (a limit that ends processes)
  std::string allowed;         // what is allowed instead, how to ask
  // How many acts this record stands for: the first ones of a kind have a record each, later ones are counted in the last.
  std::uint64_t count = 1;
  bool operator==(const Violation&) const = default;
};

// One decision of the egress proxy, written when its connection or request ended.
struct EgressRecord {
  std::chrono::system_clock::time_point time;  // of the end
  int pid = 0;                                 // of the client, as seen inside; known of refusals at most
  std::string program;                         // its comm, which it chooses itself
  std::string protocol;                        // "connect", "http", "socks5", "direct" (no proxy in mind), "dns"
  std::string method;                          // of "http"; empty otherwise
  std::string host;                            // canonical
  std::uint16_t port = 0;
  std::string address;  // dialled; empty when none was
  bool allowed = false;
  std::string reason;  // "allowed", or why it was refused or failed: "not-listed", "denied", "not-public", "dns", "rules" ...
  std::string rule;    // as written in the policy; empty when none decided
  std::uint64_t bytes_sent = 0, bytes_received = 0;  // as the command sees it
  std::chrono::microseconds duration{0};
  bool operator==(const EgressRecord&) const = default;
};

struct Usage {
  std::chrono::microseconds cpu_user{0};
  std::chrono::microseconds cpu_system{0};
  std::optional<Bytes> peak_memory;
  bool operator==(const Usage&) const = default;
};

// Captured output. `bytes` are the kept ones, never cut within a character of UTF-8; `omitted` counts the dropped ones.
struct Output {
  std::string bytes;
  std::uint64_t total = 0;
  std::uint64_t omitted = 0;
  bool operator==(const Output&) const = default;
};

// A backend that was tried and did not start.
struct TriedBackend {
  std::string backend;
  std::string why;  // one line
  bool operator==(const TriedBackend&) const = default;
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
  std::vector<Violation> violations;     // oldest first
  std::uint64_t violations_dropped = 0;  // refused as well, for which there was no room
  std::uint64_t violations_hidden = 0;   // refused as well, and kept out by ignore_violations
  std::string id;                        // for `belljar explain ID`; empty when nothing was kept
  std::vector<EgressRecord> egress;      // with network.mode = "proxy"; of a live sandbox: what ended since the last result
  std::uint64_t egress_dropped = 0;      // records that found the list full
  EnforcementReport enforcement;
  std::string backend;              // that ran it, where a choice was made; else empty
  std::vector<TriedBackend> tried;  // before it, in order (Policy::fallback)
};

// `message` of a command that was ended since it ran longer than this, whatever ran it: "command timeout after 1500ms".
std::string timeout_message(std::chrono::milliseconds timeout);
// And back: how long a command with reason kTimeout was given.
std::optional<std::chrono::milliseconds> timeout_of(const ExecResult& result);

}  // namespace belljar
