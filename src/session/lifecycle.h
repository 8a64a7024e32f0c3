// How long a sandbox lives and what becomes of its workspace. A value, and the two acts on the host that follow from it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "backend/backend.h"
#include "base/unique_fd.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/txn.h"

namespace belljar::session {

struct Lifecycle {
  std::optional<std::chrono::milliseconds> idle_timeout;
  bool remove_workspace = false;  // on stop; the sandbox made it and makes it again at the next start
  bool empty_workspace = false;   // on start
  bool shared_volume = false;     // others may use the workspace at the same time, but none is emptied then
  std::optional<txn::Place> transaction;
  Siblings siblings = Siblings::kShown;  // where the policy leaves filesystem.siblings unset
  std::string gathered;                  // where workspaces are made, and nothing else is seen; empty: nowhere
};

// The record of a sandbox that starts, with what it knows of the others (runtime/living.h). Errors: as runtime::hide_siblings.
Result<std::shared_ptr<void>> enter_living(const Policy& policy, const Lifecycle& lifecycle, backend::Workplace& place);

// Called before a start. Keep the result for as long as the sandbox runs: a lock on a volume that others know, else nothing.
// Errors: the workspace cannot be made or emptied; kFailedPrecondition, it is to be emptied while another sandbox uses it, or the
// other way round.
Result<UniqueFd> ready_workspace(const std::string& path, const Lifecycle& lifecycle);

}  // namespace belljar::session
