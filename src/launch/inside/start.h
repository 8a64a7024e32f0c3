// Starting a command.
#pragma once

#include "launch/inside/state.h"

namespace belljar::inside {

// By its request, which is complete, and the payload of `G`. Answers `f` when it cannot even try; then it counts as exited.
// Otherwise `command.begin` tells what came of it.
void start_command(const Setup& setup, Command& command, const char* payload, size_t size);
// When `command.begin` can be read: answers `s` or `f`. Before it nothing is told of the command.
void follow_start(Command& command);

}  // namespace belljar::inside
