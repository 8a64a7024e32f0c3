// From init's child to the command. Init may go on meanwhile, and the child shares its memory and its thread-local storage until
// the execve: no errno, so no call of libc.
#pragma once

#include <cstdint>

#include "launch/child.h"
#include "launch/wire.h"

namespace belljar::launch {

// What the child reports through the memory it shares.
struct SpawnFailure {
  int errnum = 0;
  std::int32_t where = wire::kExecve;
};

// `pty_slave`: of the sandbox's terminal; -1 where it has none.
[[noreturn]] void become_command(const PreparedExec& exec, int pty_slave, volatile SpawnFailure& failure) noexcept;

}  // namespace belljar::launch
