// Asks every engine that may be here, for `belljar doctor`.
#pragma once

#include <span>

namespace belljar::cli {

// Prints a JSON list to the descriptor that words[0] names (default: stdout), one object an engine: address, usable, why, next,
// version, machine, rootless, isolation (of the default runtime), isolation_most (of any), runtime (that has it). Each has two
// seconds to answer.
int probe_engines(std::span<const char* const> words);

}  // namespace belljar::cli
