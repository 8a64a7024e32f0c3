// Starting a command.
#pragma once

#include "launch/inside/state.h"

namespace belljar::inside {

// By its request, which is complete, and the payload of `G`. Answers `s` or `f`; after `f` it counts as exited.
void start_command(const Setup& setup, Command& command, const char* payload, size_t size);

}  // namespace belljar::inside
