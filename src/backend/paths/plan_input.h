// The input of a path plan, and small queries and additions that its steps (steps.h) share.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/paths/host.h"
#include "backend/paths/plan.h"
#include "belljar/error.h"
#include "belljar/policy.h"

namespace belljar::backend {

// The host, the policy and the place of work that a plan is made from. Everything it refers to must outlive it.
struct PlanInput {
  PlanInput(const Host& the_host, const Policy& the_policy, const Workplace& the_place, Mounts the_mounts);

  const Host& host;
  const Policy& policy;
  const Filesystem& fs;
  const Workplace& place;
  Mounts mounts;
  std::vector<std::pair<std::string, const Volume*>>
      remapped_volumes;  // canonical sources of volumes that have another name inside

  PathKind kind_of(const std::string& path) const { return host.facts(path).kind; }
  bool in_shown_home(const std::string& path) const { return !place.home.empty() && is_under(path, place.home); }
  // At or below the place of a volume that shows something else of the host there.
  const Volume* remapped_volume_at(std::string_view path) const;
};

// The access that an entry asks for at exactly this path; kWrite where no entry names it.
Access requested_access_at(const PlanInput& input, std::string_view path);
// Whether `path` lies below a private directory and no bind shows the host's there.
bool out_of_sight(const PathPlan& plan, const PlanInput& input, const std::string& path);

// Shows the host's `path` where it is, read-only unless `access` is kWrite.
void show(PathPlan& plan, const PlanInput& input, const std::string& path, Access access);
// Makes everything at `path` and below that is writable so far read-only.
void make_readonly(PathPlan& plan, const PlanInput& input, const std::string& path);

// What is writable at `root` is shown in the hidden directory `around` it, with nothing but the way to it. Not in what holds the
// home, which has parts of its own that are shown, and not what a volume shows there.
bool leaves_way(const PlanInput& input, std::string_view around, std::string_view root);

enum class HiddenBy { kEntry, kDefault };  // somebody's rule, or the built-in list of secrets
// Of what is shown in a hidden directory nothing can be: it is only read, or the directory holds the home, or a file in the
// workspace hides it.
Error inside_hidden(const FsEntry& entry, const std::string& hidden, HiddenBy by);

}  // namespace belljar::backend
