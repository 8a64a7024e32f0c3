// The directories in which an agent keeps its state between runs, made before the start.
#pragma once

#include <string_view>

#include "base/unique_fd.h"
#include "cli/load.h"

namespace belljar::cli {

// The directory `relative` below `folder`, made with those on the way where they are missing: mode 0700, of the owner of the
// directory they are made in. Invalid: errno says why; ELOOP, a link on the way.
UniqueFd open_made(UniqueFd folder, std::string_view relative);

// Makes the directories in which an agent's state persists: what is not there at the start is written to the layer that is dropped.
// Never through a link, which a command could have planted. What cannot be made is said on stderr, and the start goes on.
void make_agent_state(const LoadedPolicy& loaded);

}  // namespace belljar::cli
