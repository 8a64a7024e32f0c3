// The steps of plan_paths(), in the order in which it takes them (kSteps in plan.cc): functions from plan to plan, each with what
// it is about: binds, masks, covers, and gaps for the report. An error is the policy's, or this machine's.
#pragma once

#include "backend/paths/plan.h"
#include "backend/paths/plan_input.h"
#include "belljar/result.h"

namespace belljar::backend {

// The host's tree, or one of the sandbox's own in which only what is named can be seen: the policy asks for it, or a volume is
// shown at a place in "/" that the host does not have. volumes.cc
Result<PathPlan> choose_root(PathPlan plan, const PlanInput& input);
bool needs_own_root(const PathPlan& plan, const PlanInput& input);

// private.cc
Result<PathPlan> plan_private(PathPlan plan, const PlanInput& input);
// writable.cc
Result<PathPlan> plan_writable(PathPlan plan, const PlanInput& input);
// Of a root of the sandbox's own. readonly.cc
Result<PathPlan> plan_readable(PathPlan plan, const PlanInput& input);
// volumes.cc
Result<PathPlan> plan_volumes(PathPlan plan, const PlanInput& input);
// readonly.cc
Result<PathPlan> plan_readonly(PathPlan plan, const PlanInput& input);
// filesystem.scratch. Without a layer such a directory is read-only, where it is or is made in a writable place too. caches.cc
Result<PathPlan> plan_scratch(PathPlan plan, const PlanInput& input);

// Existing control names at each writable root, as whole directories. Git's are the broker's where there is one, since git itself
// has to write there; with protect = "all", or without a broker, `.git` is read-only as a whole. What is absent or deeper is the
// broker's alone. protected.cc; the names: policy/protected.cc
Result<PathPlan> plan_protected(PathPlan plan, const PlanInput& input);
// The ancestors of a read-only path become mount points of their own: rename answers EBUSY (PP-05). A pin is writable and lies
// over what is shown there, so pins are planned when all that is read-only is known, and the first ancestor that is read-only
// ends them. protected.cc
Result<PathPlan> plan_pins(PathPlan plan, const PlanInput& input);

// hidden.cc; the default list: policy/defaults.cc
Result<PathPlan> plan_hidden(PathPlan plan, const PlanInput& input);
// Rules name paths as the host does: what a volume shows under another name they would not hold. volumes.cc
Result<PathPlan> check_volumes(PathPlan plan, const PlanInput& input);

// caches.cc
Result<PathPlan> plan_caches(PathPlan plan, const PlanInput& input);
// A home below a private directory (/tmp/home) would vanish: it is shown, read-only. With a mask its overlay does that. private.cc
Result<PathPlan> show_home(PathPlan plan, const PlanInput& input);
// devices.cc
Result<PathPlan> plan_devices(PathPlan plan, const PlanInput& input);
// The workspace of a transaction. layers.cc
Result<PathPlan> plan_layers(PathPlan plan, const PlanInput& input);

}  // namespace belljar::backend
