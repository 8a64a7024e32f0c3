// Whose processes: where /proc is the host's (second tier), what the broker opens there must belong to the sandbox. The kernel
// would ask whether *we* may look into a process, and we may look into every one of our user's.
#pragma once

#include <sys/types.h>

#include <string_view>

namespace belljar::broker {

// `process` (or thread) is a descendant of init, which is the one child of `guard`, a subreaper that is alive. Neither counts.
bool descends_from(pid_t process, pid_t guard);

// `path` of something on a procfs, as path_of() gives it for a descriptor that is held: a file of no process, or of one below
// init. Held means that the process of that number is the one meant, or it is gone and nothing can be done to it.
bool is_own_on_proc(std::string_view path, pid_t guard);

}  // namespace belljar::broker
