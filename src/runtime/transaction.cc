#include "runtime/transaction.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "txn/store.h"

namespace belljar::runtime {

Result<void> check_transaction_mode(const Policy& policy) {
  if (policy.mode == Mode::kWorkspaceWrite) return {};
  return Error(Code::kInvalidArgument, "cannot run in a transaction (--txn)")
      .reason(policy.mode == Mode::kReadOnly ? "in read-only mode nothing is written"
                                             : "in this mode the command writes anywhere, around every layer")
      .next("use --policy workspace-write, or drop --txn");
}

backend::WorkspaceLayers to_layers(const txn::Layers& layers) {
  backend::WorkspaceLayers result;
  result.pool = layers.pool;
  for (const txn::LayerId id : layers.lower) result.lower.push_back(format("{}/up", id));
  result.upper = format("{}/up", layers.upper);
  result.work = format("{}/work", layers.upper);
  return result;
}

Error explain_overlay(Error error, const txn::Place& place) {
  if (!error.call().starts_with("tree: overlay")) return error;
  const int errnum = error.errnum();
  return Error(error.code(), "cannot run in a transaction (--txn)")
      .sys(errnum, error.call())
      .reason(format("the file system of {} cannot take what overlayfs writes (overlayfs itself and network file systems cannot)",
                     quoted(place.state_dir)))
      .next(txn::advise_state_dir(place.state_dir));
}

std::string group_limit(const txn::Place& place) {
  struct stat workspace{};
  const gid_t own = ::getegid();
  if (::geteuid() == 0 || ::stat(place.workspace.c_str(), &workspace) != 0 || workspace.st_gid == own) return {};
  return format(
      "what stands in the workspace with its group, {}, cannot be changed in a transaction by whose group is {} (EOVERFLOW, "
      "\"Value too large for defined data type\"), only what is new; `newgrp` or `sg` to that group first lets it",
      workspace.st_gid, own);
}

EnforcementClause transaction_clause(const txn::Place& place) {
  const std::string groups = group_limit(place);
  return {"transaction", place.name, "overlayfs: the workspace's changes stay in layers until `belljar commit`", Enforced::kFull,
          "other writable paths are written directly" + (groups.empty() ? groups : "; " + groups)};
}

}  // namespace belljar::runtime
