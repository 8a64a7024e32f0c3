// How long a sandbox lives and what becomes of its workspace. A value, and the two acts on the host that follow from it.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "belljar/result.h"
#include "belljar/txn.h"

namespace belljar::session {

struct Lifecycle {
  std::optional<std::chrono::milliseconds> idle_timeout;
  bool remove_workspace = false;  // on stop; the sandbox made it and makes it again at the next start
  bool empty_workspace = false;   // on start
  std::optional<txn::Place> transaction;
};

// Before a start. Errors: the workspace cannot be made or emptied.
Result<void> ready_workspace(const std::string& path, const Lifecycle& lifecycle);

}  // namespace belljar::session
