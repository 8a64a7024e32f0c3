// Runs one command under a policy and tells what came of it.
//
//   Policy policy;                                    // workspace-write, no network, secrets hidden
//   policy.limits.timeout = 30s;
//   ExecResult result = *belljar::run(policy, shell_command("make test"), {.workspace = "/home/me/project"});
//   if (result.reason == Reason::kTimeout) ...
#pragma once

#include <map>
#include <string>

#include "belljar/command.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"

namespace belljar {

struct RunOptions {
  // Absolute or relative to the current directory; empty: the current directory. What the command may write to under
  // workspace-write.
  std::string workspace;
  // What the policy's environment is taken from. Empty: this process's own.
  std::map<std::string, std::string> caller_env;
  // Not empty: run in the transaction of that name (belljar/txn.h), which begins if there is none; what the command writes to the
  // workspace stays in it. Its state lies in `state_dir`, empty: default_state_dir().
  std::string transaction;
  std::string state_dir;
  // Bytes kept of stdout and of stderr each, unless policy.limits.output_bytes says otherwise; the rest is read, counted and
  // dropped.
  Bytes output_bytes{200'000};
  // The command's stdin: a descriptor that stays the caller's, or -1 for none (/dev/null). Pipes are handed over, all else is
  // relayed.
  int input_fd = -1;
  // Readable or hung up: the command is told to end (TERM, after policy.limits.kill_grace KILL) and the result says kCancelled.
  // For instance an eventfd(2) that another thread writes to. -1: none.
  int cancel_fd = -1;
};

// Starts `command` in a sandbox of its own and returns when it has ended, its whole tree is dead, and its output is read.
//
// What the command does is never an Error: a failure, a signal, a timeout, a limit, a program that is not there (kStartFailed, with
// exit_code 126 or 127) come back as an ExecResult. `duration` and `policy.limits.timeout` count from execve(2).
// Errors: kInvalidArgument, the policy, command or workspace makes no sense; kFailedPrecondition, this machine cannot enforce the
// policy (names the clause); kUnimplemented, a part of the policy that no backend serves yet; kResourceExhausted, no processes,
// descriptors or memory.
// Blocks the calling thread; signal handlers and dispositions of the process are left alone. Safe from any thread; the command dies
// with the thread that called (PR_SET_PDEATHSIG).
Result<ExecResult> run(const Policy& policy, const Command& command, const RunOptions& options = {});

}  // namespace belljar
