// Root's second choice where the workspace cannot be lent by an idmapped mount (overlayfs, most network file systems): the command
// becomes the host id that owns the workspace, if that is not root. Such a command reads what that user may read, so the sandbox
// is planned as for that user: their home, their secrets. A workspace of root's is refused (docs/design/identity.md says what else
// was tried).
#pragma once

#include <optional>

#include "backend/backend.h"
#include "backend/paths/host.h"

namespace belljar::backend {

// `place` as the owner of its workspace sees it: owner, home, runtime directory, HOME. nullopt when that is root.
std::optional<Workplace> place_of_owner(const Host& host, const Workplace& place);

}  // namespace belljar::backend
