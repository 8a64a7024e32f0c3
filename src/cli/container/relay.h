// Joins a process in a sandbox to our own stdin, stdout, stderr, terminal and signals until it ends.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "front/signals.h"

namespace belljar::cli {

struct RelayOptions {
  bool terminal = false;                                       // give it one of its own
  bool input = true;                                           // our stdin is its
  bool capture = false;                                        // keep its output for the result instead of passing it on
  std::chrono::milliseconds kill_grace = Limits{}.kill_grace;  // between a TERM of ours and KILL
  std::optional<std::uint64_t> cap = {};                       // bytes passed on of each stream; the rest is read and counted
};

struct Relayed {
  ExecResult result;
  std::uint64_t output_dropped = 0;  // bytes of both streams beyond the cap, captured or passed on
};

// A reader of ours that goes away ends the command, which then reads as killed by SIGPIPE. Errors: as Sandbox::spawn; kUnavailable,
// our output could not be written for another reason, and the command was ended.
Result<Relayed> relay(Sandbox& sandbox, const Command& command, SpawnOptions options, const RelayOptions& how,
                      front::Signals& signals);

}  // namespace belljar::cli
