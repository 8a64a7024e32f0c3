// What the broker is to hold while the command runs, made from the policy and the paths that were planned.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "backend/paths/plan.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "broker/file_rules.h"
#include "kernel/seccomp.h"

namespace belljar::backend {

// None when no rule of the policy needs it: then no file call is intercepted and nothing is slower. `held`: no mount holds the
// paths (second tier), so all of them are the broker's; without it names, patterns and contents are.
std::shared_ptr<const broker::FileRules> make_file_rules(const Policy& policy, const PathPlan& paths,
                                                         std::optional<broker::EnforcedPaths> held = std::nullopt);

// A name that is not there yet, or a pattern, which these rules hold where there is a broker. Hidden names only below what is
// writable: elsewhere the command cannot make them, and every open of every file would pay for what the host may make.
bool is_held_by_rules(const PathPlan& paths, const Gap& gap);

// Beside a mount, which holds what stood there at the start: what is put in its place they hold alone.
bool has_mount(const Gap& gap) noexcept;

// What they hold of it, and what goes around them: a supervisor cannot perform exec, and what it lets go on can be exchanged.
EnforcementClause held_clause(const Gap& gap, Mounts mounts);

// FileRulesOptions::has_git and is_git of its keep_git. `on_host`: where such a directory lies.
void look_for_git(broker::FileRulesOptions& options, const std::function<std::string(const std::string&)>& on_host);

// The one thing that the command can write to for good is the workspace of a transaction, and `rules` hold nothing there but what
// every commit refuses: the names of protect = "default". Then the command may give any name to what it writes, since nobody on the
// host sees it before the commit, which judges it (runtime/commit.cc). Not so with
//   - another writable path, a volume or a cache that is kept: the host has what is written there at once;
//   - patterns, and what a start hides or holds by name: a commit is judged by the policy of its own moment, which need not have
//     what a flag of this run said;
//   - protect = "all", for the same reason.
bool is_judged_at_commit(const Policy& policy, const PathPlan& paths, const broker::FileRules& rules);

// The calls that the filter sends to the broker for these rules, where no commit judges instead.
kernel::FileCalls file_calls(const broker::FileRules* rules) noexcept;

}  // namespace belljar::backend
