// The requests that a keeper answers, one for each connection:
//
//   {"protocol": 3, "verb": "info"}                     -> {"processes": N, "execs": N}
//   {..., "verb": "stats"}                              -> what it uses now (stats.cc)
//   {..., "verb": "network", "allowed_domains": [...], "denied_domains": [...], "allowed_requests": [...], "drop": [...],
//    "reset": bool}                                    -> the rules in force, changed so (network.cc)
//   {..., "verb": "logs", "follow": bool}               -> {"lines": [...], "lost": N}, in pieces; with follow until it ends
//   {..., "verb": "kill"}                               -> {"ended": true}, when it has
//   {..., "verb": "exec", "argv": [...], "env": {...}, "cwd": "", "timeout_ms": N, "shown": "", "allowed_domains": [...],
//    "terminal": [rows, columns],
//    "streams": [bool, bool, bool]} with a descriptor for each true stream
//       -> {"started": PID, "kill_grace_ms": N}, with the terminal's other side; then {"result": "..."} (runtime/json.h, without
//       the streams)
//       meanwhile taken: {"signal": N}; {"terminate": true}, TERM and KILL after the grace; {"kill": "why"}; {"over_limit":
//       "stdout"}, which ends the command with the reason output; after the result: {"output_bytes": N}, for the log. A
//       connection that closes ends the command.
//
// Or {"error": {...}}.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "keeper/event_log.h"
#include "keeper/wire.h"
#include "session/live.h"

namespace belljar::keeper {

// Through the proxy, by connections that have ended; without records that found the proxy's list full.
struct Traffic {
  std::atomic<std::uint64_t> in{0}, out{0};
};

struct KeptSandbox {
  std::shared_ptr<session::LiveSandbox> sandbox;
  std::shared_ptr<EventLog> log;
  Limits limits;  // of the policy
  NetMode network = NetMode::kNone;
  std::string state_dir;  // for `belljar explain`
  std::shared_ptr<Traffic> traffic = std::make_shared<Traffic>();
  std::shared_ptr<std::mutex> changing = std::make_shared<std::mutex>();  // one change of the rules at a time
};

// Into the log, and counted: what was refused and what went through the proxy.
void tell_seen(const KeptSandbox& kept, const std::vector<Violation>& violations, const std::vector<EgressRecord>& egress);
// The same of background processes, since the last command ended.
void tell_background(const KeptSandbox& kept);

// The means to end the keeper.
class EndControl {
 public:
  EndControl() = default;
  EndControl(const EndControl&) = delete;
  EndControl& operator=(const EndControl&) = delete;
  virtual ~EndControl() = default;
  virtual void end(const std::string& why) noexcept = 0;
  // Whether the sandbox has ended within `patience`.
  virtual bool await_end(std::chrono::milliseconds patience) = 0;
};

// Answers the one request of a connection. Returns when that is done, or the other side is gone.
void serve(Channel& channel, KeptSandbox& kept, EndControl& ending);

// For serve(): each in a file of its own.
void serve_exec(Channel& channel, Received request, KeptSandbox& kept);
Json measure(Channel& channel, KeptSandbox& kept);
Json serve_network(const Json& message, const KeptSandbox& kept);

}  // namespace belljar::keeper
