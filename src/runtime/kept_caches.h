// Caches that are kept for the next command of a workspace (filesystem.caches = "workspace"): STATE/caches/DEVICE-INODE/ with
// `workspace`, its path, `lock`, and the layers that the backend makes there (backend/native/kept_caches.h). One sandbox at a time
// has them; another one of the same workspace meanwhile discards what it writes, and its report says so.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "belljar/policy.h"
#include "belljar/result.h"

namespace belljar::runtime {

// The value for Workplace::kept_caches: nothing where the policy does not ask for it. Never fails: where they cannot be kept,
// KeptCaches::why_not says why and the command runs all the same.
std::optional<backend::KeptCaches> keep_caches(const Policy& policy, const std::string& workspace, const std::string& state_dir);

struct KeptPoolInfo {
  std::string path;       // of the pool
  std::string workspace;  // as it was named then; it may be gone
  bool present = false;   // the workspace is there
  bool in_use = false;
  std::vector<std::string> caches;
  std::uint64_t bytes = 0;  // on disk
  bool at_least = false;    // the size of a part cannot be asked
  std::chrono::system_clock::time_point last_used;
};

// Sorted by workspace. Errors: the directory of the pools cannot be read; none there is an empty list.
Result<std::vector<KeptPoolInfo>> list_kept_caches(const std::string& state_dir);

// Errors: kFailedPrecondition, a sandbox uses them; of the file system.
Result<void> remove_kept_caches(const KeptPoolInfo& pool);
// Finishes removals that were interrupted.
Result<void> sweep_kept_caches(const std::string& state_dir);

}  // namespace belljar::runtime
