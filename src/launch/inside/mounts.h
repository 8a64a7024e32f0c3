// What the engine has mounted, told before any command runs.
#pragma once

#include <stdint.h>

namespace belljar::inside {

// The kernel's boot id, a line end, and mountinfo as far as a record holds it; what cannot be read is left out.
void send_mounts(uint32_t id);

}  // namespace belljar::inside
