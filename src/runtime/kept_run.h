// A run with refusals as it is kept for `belljar explain`: what was refused, and enough to recognise the run by. No arguments, no
// environment, no output: those may hold secrets.
#pragma once

#include <string>
#include <string_view>

#include "belljar/exec_result.h"
#include "belljar/result.h"

namespace belljar::runtime {

struct KeptRun {
  std::string program;    // argv[0]
  std::string workspace;  // absolute
  ExecResult result;      // id, exit code, reason, violations and their counts; nothing else
};

// One JSON object, at most about kMaxKeptBytes: violations beyond it are counted as dropped.
inline constexpr std::size_t kMaxKeptBytes = 1U << 20;
std::string to_json(const KeptRun& run);

// Errors: kDataLoss, `text` is no object that to_json made (a torn write, another version).
Result<KeptRun> parse_kept_run(std::string_view text);

}  // namespace belljar::runtime
