// What the engine has made of this process and mounted, told before any command runs.
#pragma once

#include <stdint.h>

namespace belljar::inside {

// The kernel's boot id, a line end, this process's status (proc(5)), an empty line, and mountinfo as far as a record holds it; what
// cannot be read is left out.
void send_mounts(uint32_t id);

}  // namespace belljar::inside
