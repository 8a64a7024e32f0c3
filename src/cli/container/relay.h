// Joins a process in a sandbox to our own stdin, stdout, stderr, terminal and signals until it ends.
#pragma once

#include <chrono>
#include <cstdint>

#include "belljar/command.h"
#include "belljar/exec_result.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "front/signals.h"
#include "front/stdio.h"

namespace belljar::cli {

struct RelayResult {
  ExecResult result;
  std::uint64_t output_dropped = 0;  // bytes of both streams beyond the cap, captured or passed on
};

// `streams`: which of our streams are its, and whether it has a terminal of its own; output that is captured is the result's, with
// the cap of `options`. `kill_grace`: between a TERM of ours and KILL. A reader of ours that goes away ends the command, which then
// reads as killed by SIGPIPE. Errors: as Sandbox::spawn; kUnavailable, our output could not be written for another reason, and the
// command was ended.
Result<RelayResult> relay(Sandbox& sandbox, const Command& command, SpawnOptions options, front::StdioOptions streams,
                          std::chrono::milliseconds kill_grace, front::Signals& signals);

}  // namespace belljar::cli
