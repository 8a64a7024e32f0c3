// Why the kernel makes no process in namespaces of its own, in words, and what to do about it.
#pragma once

#include "belljar/error.h"

namespace belljar::launch {

inline constexpr char kMoreFiles[] = "raise the limit of open files (`ulimit -n`)";

// `error`: what clone3(2) failed with.
Error clone_error(int error, bool user_namespace);

}  // namespace belljar::launch
