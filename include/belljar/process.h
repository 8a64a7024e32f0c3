// A command that runs in a sandbox while its caller does something else.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "belljar/exec_result.h"
#include "belljar/result.h"

namespace belljar {

// From Sandbox::spawn. Its output goes to the callbacks of the options, on a thread of its own, and up to the cap into the result.
// The destructor ends the command and waits, unless it was detached or has ended: TERM to its tree, KILL after the policy's
// kill_grace. In a callback of this very command it does not wait. Safe from any thread.
class Process {
 public:
  Process() = default;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  virtual ~Process() = default;

  // As seen inside the sandbox; 0 where the backend has no processes, or it was to end before its start was known.
  virtual int pid() const noexcept = 0;
  // The result once the command has ended; nullopt when `patience` passed before. Unset patience: however long it takes. Can be
  // called again, and then gives the same.
  virtual Result<std::optional<ExecResult>> wait(std::optional<std::chrono::milliseconds> patience = {}) = 0;
  // To the command's process group. Errors: kInvalidArgument, no such signal; kFailedPrecondition, it has ended.
  virtual Result<void> signal(int number) = 0;
  // TERM to all of it, KILL after the policy's kill_grace to what is left, or when the command has ended: nothing of it stays in
  // the sandbox. Its result is its own. Does not wait. Errors: kFailedPrecondition, it has ended.
  virtual Result<void> terminate() = 0;
  // KILL to all of it at once, also to what has left its process group. Does not wait. Errors: kFailedPrecondition, it has ended.
  virtual Result<void> kill() = 0;
  // Needs SpawnInput::kPipe or a terminal. Blocks until all is taken. Errors: kFailedPrecondition, there is no such pipe, or nobody
  // reads it any more; kDeadlineExceeded after `patience`, part of it may have been written.
  virtual Result<void> write_stdin(std::string_view bytes, std::chrono::milliseconds patience = std::chrono::seconds(30)) = 0;
  // End of file for the command. A terminal gets its end-of-file character.
  virtual Result<void> close_stdin() = 0;
  // Of its terminal. Errors: kFailedPrecondition, it has none.
  virtual Result<void> resize(unsigned short rows, unsigned short columns) = 0;
  // From now on it belongs to the sandbox: it runs on without this handle, without a timeout, its output is dropped, and it ends
  // with the sandbox.
  virtual Result<void> detach() = 0;
};

}  // namespace belljar
