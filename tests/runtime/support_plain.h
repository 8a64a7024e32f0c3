// Runs for tests of the runtime alone: plans without namespaces (the launcher is the subreaper) or with the few that need no
// mounts.
#pragma once

#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "runtime/run.h"

namespace belljar::test {

// No namespaces; init sweeps the tree.
backend::Prepared plain();
// An own pid namespace and nothing else that matters.
backend::Prepared with_pid_namespace();

// `sh -c text` under `policy`, captured. Fails the test when it cannot start.
runtime::RunOutcome run_shell(const std::string& text, const Policy& policy = {}, runtime::RunSettings session = {},
                              backend::Prepared (*prepared)() = with_pid_namespace);

// The ends of a pty for use as the user's terminal.
struct Terminal {
  UniqueFd master, slave;
};
Terminal open_terminal();

// Both ends of a pipe.
struct PipePair {
  UniqueFd read, write;
};
PipePair open_pipe();

// Everything up to the end of file.
std::string read_to_end(int fd);

}  // namespace belljar::test
