// Layers of caches that outlive a command (filesystem.caches = "workspace"), one for each cache: `POOL/N` with `for`, what it is
// for; `up`, what was written; `work`, overlayfs's own. What a layer is for is the cache's path and, since a layer shows what it
// has over everything below it, the names in the cache that were hidden then and who owns it: under other rules another layer is
// made, and a cache that the policy names no more is not shown through another's.
#pragma once

#include <sys/types.h>

#include <string>

#include "backend/paths/view.h"
#include "belljar/result.h"

namespace belljar::backend {

// Finds the layer of each cache, or makes it, owned by `uid` and `gid` when we are root; sets Cache::kept. The caller holds the
// pool's lock. `judged`: git names are held in them, so what was written without that is not among them. Errors: of the file
// system.
Result<void> find_kept_layers(const std::string& pool, uid_t uid, gid_t gid, bool judged, View& view);

}  // namespace belljar::backend
