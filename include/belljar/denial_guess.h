// A guess, for remote backends that cannot tell what they refused. Everything that runs on this machine knows exactly: read
// ExecResult::violations there.
#pragma once

#include "belljar/exec_result.h"

namespace belljar {

// Who held the command, as far as it decides whether there is anything to guess.
enum class HeldBy {
  kNobody,  // no sandbox: nothing was denied by one
  kLocal,   // native, landlock, container on this machine: refusals are violations, never guessed
  kRemote,  // a cloud's or another machine's sandbox, which returns text and an exit code
};

// Whether a remote sandbox *may* have refused something, from the exit code and from words in the output ("permission denied",
// "read-only file system", ...), of either stream and in any case of letters. Wrong in both directions: ordinary file modes say the
// same words, and a program may print none. So it must never decide by itself (retry without a sandbox, widen a policy), and
// whoever shows it says "probably". Always false for kNobody, kLocal and exit code 0. A death by SIGSYS (exit code 159) counts
// without words.
bool is_likely_sandbox_denied(HeldBy held_by, const ExecResult& result);

}  // namespace belljar
