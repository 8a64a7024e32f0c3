// The state of a command as the helper `look` (scripts.cc) prints it, read into a value. No I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "belljar/result.h"

namespace belljar::remote::shell {

// The next of one stream.
struct OutputPiece {
  std::uint64_t base = 0;   // the file to ask for next
  std::uint64_t count = 0;  // bytes; `bytes` holds them, unless they were only counted
  bool more = false;        // at once
  std::string bytes;
};

struct CommandStatus {
  int pid = 0;                // 0: not known yet
  std::optional<int> status;  // as $? was; unset: it runs
  bool signalled = false;     // and not exited with 128 + n
  bool late = false;          // its time was over
  bool lost = false;          // nobody looks after it any more
  std::string failed;         // "127", "126", or of its directory: "missing", "file", "closed"
  OutputPiece out, err;
};

// `count_out`, `count_err`: no bytes were asked for. Errors: kDataLoss, that is not all that was said, or something else.
Result<CommandStatus> parse_command_status(std::string_view text, bool count_out, bool count_err);

}  // namespace belljar::remote::shell
