// What a connection to a keeper may ask, one request each:
//
//   {"protocol": 1, "verb": "info"}                     -> {"processes": N, "execs": N}
//   {..., "verb": "stats"}                              -> what it uses now (stats.cc)
//   {..., "verb": "logs", "follow": bool}               -> {"lines": [...], "lost": N}, in pieces; with follow until it ends
//   {..., "verb": "kill"}                               -> {"ended": true}, when it has
//   {..., "verb": "exec", "argv": [...], "env": {...}, "cwd": "", "timeout_ms": N, "shown": "", "terminal": [rows, columns],
//    "streams": [bool, bool, bool]} with a descriptor for each true stream
//       -> {"started": PID}, with the terminal's other side; then {"result": "..."} (runtime/json.h, without the streams)
//       meanwhile taken: {"signal": N}; after the result: {"output_bytes": N}, for the log. A connection that closes ends the
//       command.
//
// Or {"error": {...}}.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "keeper/event_log.h"
#include "keeper/wire.h"
#include "session/live.h"

namespace belljar::keeper {

struct Kept {
  std::shared_ptr<session::LiveSandbox> sandbox;
  std::shared_ptr<EventLog> log;
  Limits limits;  // of the policy
  NetMode network = NetMode::kNone;
  std::string state_dir;  // for `belljar explain`
};

// Who can end the keeper.
class Ending {
 public:
  Ending() = default;
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;
  virtual ~Ending() = default;
  virtual void end(const std::string& why) noexcept = 0;
  // Whether the sandbox has ended within `patience`.
  virtual bool await_end(std::chrono::milliseconds patience) = 0;
};

// Answers the one request of a connection. Returns when that is done, or the other side is gone.
void serve(Channel& channel, Kept& kept, Ending& ending);

// For serve(): each in a file of its own.
void serve_exec(Channel& channel, Received request, Kept& kept);
Json measure(Channel& channel, Kept& kept);

}  // namespace belljar::keeper
