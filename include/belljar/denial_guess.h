// A guess, for remote backends that do not report refusals. For everything that runs on this machine, read
// ExecResult::violations: they are exact.
#pragma once

#include "belljar/exec_result.h"

namespace belljar {

// Where the command was held, as far as that decides whether there is anything to guess.
enum class HeldBy {
  kNobody,  // no sandbox: nothing was denied by one
  kLocal,   // native, landlock, container on this machine: refusals are violations, never guessed
  kRemote,  // a cloud's or another machine's sandbox, which returns text and an exit code
};

// Whether a remote sandbox *may* have refused something, from the exit code and from words in the output ("permission denied",
// "read-only file system", ...), of either stream and in any case of letters. Wrong in both directions: ordinary file modes say the
// same words, and a program may print none. So nothing may be decided by it alone (a retry without a sandbox, a wider policy), and
// a message that shows it says "probably". Always false for kNobody, kLocal and exit code 0. A death by SIGSYS (exit code 159)
// counts without words.
bool is_likely_sandbox_denied(HeldBy held_by, const ExecResult& result);

}  // namespace belljar
