// The front of one command in a kept sandbox: the caller's streams, signals and terminal, while the keeper waits for the end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "belljar/exec_result.h"
#include "belljar/result.h"
#include "front/stdio.h"
#include "keeper/wire.h"

namespace belljar::cli {

struct FrontResult {
  std::string result;  // runtime/json.h, without streams
  Output out, err;     // with captured output
  std::uint64_t output_bytes = 0;
  std::vector<std::string> notes;  // of output that was lost
  std::string over_limit;          // "stdout" or "stderr", when one had more than its limit
};

// What becomes of a command with more output than the cap.
enum class OverCap { kDrop, kKill };

// Sends `call` (keeper/serve.h) with the ends of new streams and serves them until the command has ended. Errors: as the keeper's
// answer; kUnavailable, it is gone; kCanceled, a signal came before the command had started.
Result<FrontResult> run_front(keeper::Channel& channel, keeper::Json call, const front::StdioOptions& options, OverCap over_cap);

}  // namespace belljar::cli
