#include "backend/local/local.h"

#include "base/format.h"
#include "policy/backends.h"

namespace belljar::backend {

Result<Prepared> LocalBackend::prepare(const Policy& policy, const Workplace& place) {
  Prepared prepared;
  launch::Plan& plan = prepared.plan;
  plan.env = place.env;
  plan.default_cwd = host_.canonical(place.cwd).value_or(place.cwd);
  plan.subreaper = true;
  plan.drop_privileges = false;
  const auto add = [&](const char* clause, std::string asked, const char* mechanism, Enforced enforced, const char* detail) {
    prepared.report.push_back({clause, std::move(asked), mechanism, enforced, detail, true});
  };
  add("mode", std::string(to_string(policy.mode)), "", Enforced::kNone,
      "the local backend is a guard rail against mistakes, not a sandbox: a command can do all that you can do");
  add("filesystem.workspace", "file calls stay in the workspace", "openat2, RESOLVE_BENEATH", Enforced::kPartial,
      "commands are not held by it");
  if (place.siblings)
    add("filesystem.siblings", "workspaces of this user's other sandboxes hidden", "", Enforced::kNone,
        "commands reach whatever you reach");
  add("network.mode", std::string(to_string(policy.network.mode)), "",
      policy.network.mode == NetMode::kHost ? Enforced::kFull : Enforced::kNone,
      policy.network.mode == NetMode::kHost ? "" : "commands reach whatever you reach");
  add("kill", "nothing outlives the sandbox", "subreaper and sweep", Enforced::kPartial, "a fork bomb can outrun the sweep");
  policy::report_isolation(policy, Isolation::kGuardRails, "a rule for file calls", prepared.report);
  return prepared;
}

}  // namespace belljar::backend
