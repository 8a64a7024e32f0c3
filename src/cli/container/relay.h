// Joins a process in a sandbox to our own stdin, stdout, stderr, terminal and signals until it ends.
#pragma once

#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "runtime/signals.h"

namespace belljar::cli {

struct RelayOptions {
  bool terminal = false;  // give it one of its own
  bool input = true;      // our stdin is its
  bool capture = false;   // keep its output for the result instead of passing it on
};

// A reader of ours that goes away ends the command, which then reads as killed by SIGPIPE. Errors: as Sandbox::spawn; kUnavailable,
// our output could not be written for another reason, and the command was ended.
Result<ExecResult> relay(Sandbox& sandbox, const Command& command, SpawnOptions options, const RelayOptions& how,
                         runtime::Signals& signals);

}  // namespace belljar::cli
