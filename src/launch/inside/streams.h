// What a command reads and writes.
#pragma once

#include "launch/inside/state.h"

namespace belljar::inside {

// One read; false when there is nothing now, or nothing any more, or no room for it outside.
bool relay(Command& command, int& fd, char type, uint64_t& count);
// Its output, after its end, as far as the window lets it; false: more waits for the outside to take what it has.
bool drained(Command& command);

void take_input(Command& command, const char* bytes, size_t size);
void feed(Command& command);  // as much of its input as it takes now
void drop_input(Command& command);

}  // namespace belljar::inside
