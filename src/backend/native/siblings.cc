#include "backend/native/siblings.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/paths/host.h"
#include "backend/paths/plan.h"
#include "backend/paths/view.h"
#include "base/format.h"
#include "belljar/exec_result.h"

namespace belljar::backend {
namespace {

// Of the host beside the workspace, in a tree where only what is named can be seen.
std::vector<std::string> shown_beside(const Workplace& place, const PathPlan& paths) {
  std::vector<std::string> shown;
  for (const Bind& bind : paths.view.binds) {
    const bool within = std::ranges::any_of(shown, [&](const std::string& path) { return is_under(bind.source, path); });
    if (bind.directory && !within && !is_under(bind.source, place.workspace)) shown.push_back(bind.source);
  }
  return shown;
}

bool is_out_of_sight(const PathPlan& paths, const std::string& path) {
  const auto covers = [&](const std::string& hidden) { return is_under(path, hidden); };
  const auto shows = [&](const Bind& bind) { return is_under(path, bind.target); };
  const View& view = paths.view;
  if (is_hidden(view, path) || std::ranges::any_of(paths.ways, covers)) return true;
  if (std::ranges::any_of(view.binds, shows)) return false;
  return !view.whole_root || std::ranges::any_of(view.private_dirs, covers, &PrivateDir::target);
}

void add(std::string& text, const std::string& more) { text += (text.empty() ? "" : "; ") + more; }

}  // namespace

std::optional<EnforcementClause> siblings_clause(const Workplace& place, const PathPlan& paths, bool held, std::string mechanism,
                                                 std::string detail) {
  if (!place.siblings) return std::nullopt;
  const SiblingWorkspaces& siblings = *place.siblings;
  EnforcementClause clause{.clause = "filesystem.siblings", .asked = "workspaces of this user's other sandboxes hidden"};
  clause.best_effort = !siblings.asked;
  if (!siblings.unknown.empty() || !held) {
    clause.enforced = Enforced::kNone;
    clause.detail = siblings.unknown.empty() ? "the plan of this start lacks " + mechanism
                                             : format("it cannot be told which there are: {}", escaped(siblings.unknown));
    return clause;
  }
  clause.asked += format(", {} now", siblings.hidden.size());
  clause.mechanism = std::move(mechanism);
  for (const std::string& path : siblings.visible) add(detail, path + " stays visible");
  for (const std::string& path : siblings.hidden) {
    if (!is_out_of_sight(paths, path)) add(detail, quoted(path) + " stays visible (nothing could be put over it)");
  }
  const std::vector<std::string> shown = shown_beside(place, paths);
  if (paths.view.whole_root) {
    add(detail, "a directory that a sandbox starts to work in later, outside of what is hidden now, can be seen");
  } else if (!shown.empty()) {
    add(detail, format("a directory that a sandbox starts to work in later can be seen if it lies in {}{}", quoted(shown.front()),
                       shown.size() == 1 ? "" : format(" or {} more", shown.size() - 1)));
  }
  clause.enforced = detail.empty() ? Enforced::kFull : Enforced::kPartial;
  clause.detail = std::move(detail);
  return clause;
}

}  // namespace belljar::backend
