// What the engine's runtimes isolate with. The engine says which program each name stands for: a name alone proves nothing.
#pragma once

#include <string>

#include "backend/container/engine.h"
#include "belljar/policy.h"

namespace belljar::backend::container {

// kVm for Kata, krun and gVisor: the command calls a kernel of its own (gVisor's runs as a process of this one, and is all of it
// that the command reaches). kContainer for any other, and for names that the engine does not tell of.
Isolation isolation_of_runtime(const EngineFacts& facts, const std::string& name);

// The runtime to ask for: `given`; where none is given, the engine's default does not hold `wanted` and another does, that one.
std::string choose_runtime(const EngineFacts& facts, const std::string& given, Isolation wanted);

}  // namespace belljar::backend::container
