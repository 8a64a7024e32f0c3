// The processes of one command, and how they end; what the kernel counted against the container's limits.
#pragma once

#include "launch/inside/state.h"

namespace belljar::inside {

// KILL to the command, to what it was when it was told to end, to what it left behind since, and to all that descends from them.
void kill_tree(const Command& command);
// TERM, and KILL when the grace is over (the loop's); without a grace KILL at once.
void end_command(Command& command, uint32_t grace_ms);
// What it left is not what a command leaves that is being ended.
void note_ended(const Command& ended);

// Of the container, since it was made.
unsigned long long oom_kills();
unsigned long long pids_refused();

}  // namespace belljar::inside
