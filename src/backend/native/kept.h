// Layers of caches that outlive a command (filesystem.caches = "workspace"), one for each cache: `POOL/N` with `path`, the cache's
// path; `up`, what was written; `work`, overlayfs's own. One for each, so that a cache that the policy names no more is not shown
// through another's layer.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "backend/native/tree.h"
#include "belljar/result.h"

namespace belljar::backend {

// Finds the layer of each cache, or makes it, owned by `uid` and `gid` when we are root; sets Cache::kept. The caller holds the
// pool's lock. Errors: of the file system.
Result<void> find_kept_layers(const std::string& pool, uid_t uid, gid_t gid, std::vector<Cache>& caches);

}  // namespace belljar::backend
