// What an agent keeps between runs, before the start.
#pragma once

#include <string_view>

#include "base/unique_fd.h"
#include "cli/load.h"

namespace belljar::cli {

// The directory `relative` below `folder`, and those on the way, mode 0700, each of its directory's owner where we are root. 0, or
// an errno; ELOOP: a link on the way.
int make_below(UniqueFd folder, std::string_view relative);

// Makes the directories in which an agent's state persists: what is not there at the start is written to the layer that is dropped.
// Never through a link, which a command could have planted. What cannot be made is said on stderr, and the start goes on.
void make_agent_state(const LoadedPolicy& loaded);

}  // namespace belljar::cli
