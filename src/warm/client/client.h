// The beginning of every `belljar run`: where a spare is ready for exactly this run, it is handed over.
#pragma once

namespace belljar::warm {

// Ends the process with the command's exit code where a spare took the run; else returns, and nothing has changed. `argv` and
// `environment` as the kernel laid them. Raw system calls alone, no memory but the stack, nothing that needs relocations: it may
// run before libc has been set up (start.S).
extern "C" void belljar_warm_first(int argc, char** argv, char** environment) noexcept;

}  // namespace belljar::warm
