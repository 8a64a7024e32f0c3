#include <sys/stat.h>

#include <string>
#include <utility>

#include "backend/paths/host.h"
#include "backend/paths/plan.h"
#include "backend/paths/plan_input.h"
#include "backend/paths/steps.h"
#include "backend/paths/view.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"

namespace belljar::backend {
namespace {

// What is opened is writable and lies over everything else at its place, so it has to be a device: no file, no directory of
// files.
Result<void> check_device(const PlanInput& input, const std::string& device) {
  const auto refused = [&](std::string reason) {
    return Error(Code::kInvalidArgument, format("cannot open the device {}", quoted(device)))
        .reason(std::move(reason))
        .next("name a character or block device, or a directory of them below /dev");
  };
  const PathFacts facts = input.host.facts(device);
  if (const auto real = input.host.canonical(device); real != device)
    return refused(format("there is a symbolic link on the way, to {}", quoted(real.value_or(""))));
  // /dev/shm, /dev/pts and the like are file systems of their own.
  const bool directory = facts.kind == PathKind::kDirectory && device != "/dev" && is_under(device, "/dev") &&
                         facts.dev == input.host.facts("/dev").dev;
  if (!directory && !S_ISCHR(facts.mode) && !S_ISBLK(facts.mode)) return refused("it is none");
  if (const FsEntry* rule = find_rule(input.fs, device); rule != nullptr && rule->access == Access::kNone && rule->path != "/")
    return refused(format("{} is hidden ({})", quoted(rule->path), to_string(rule->origin)));
  return {};
}

}  // namespace

Result<PathPlan> plan_devices(PathPlan plan, const PlanInput& input) {
  for (const std::string& device : input.fs.devices) {
    if (input.kind_of(device) == PathKind::kAbsent)
      return Error(Code::kNotFound, format("cannot open the device {}", quoted(device)))
          .reason("this machine has none of that name")
          .next("check the name, or drop it from `devices`");
    BELLJAR_CHECK(check_device(input, device));
    plan.view.devices.push_back(device);
  }
  return plan;
}

}  // namespace belljar::backend
