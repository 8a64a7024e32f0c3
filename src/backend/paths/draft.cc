#include "backend/paths/draft.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "backend/paths/host.h"
#include "backend/paths/view.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "policy/permit.h"

namespace belljar::backend {

bool ViewDraft::writable(std::string_view path) const {
  return std::any_of(paths.writable.begin(), paths.writable.end(), [&](const std::string& root) { return is_under(path, root); });
}

bool ViewDraft::is_private(std::string_view path) const {
  return std::any_of(view().private_dirs.begin(), view().private_dirs.end(),
                     [&](const PrivateDir& dir) { return is_under(path, dir.target); });
}

bool ViewDraft::is_private_dir(std::string_view path) const {
  return std::any_of(view().private_dirs.begin(), view().private_dirs.end(),
                     [&](const PrivateDir& dir) { return dir.target == path; });
}

bool ViewDraft::out_of_sight(const std::string& path) const { return is_private(path) && !in_shown_home(path) && !bound(path); }

const Bind* ViewDraft::shown_by(std::string_view path) const {
  const Bind* nearest = nullptr;
  for (const Bind& bind : view().binds) {
    if (is_under(path, bind.target) && (nearest == nullptr || bind.target.size() >= nearest->target.size())) nearest = &bind;
  }
  return nearest;
}

std::string ViewDraft::behind(const std::string& path) const {
  const Bind* bind = shown_by(path);
  if (bind == nullptr || bind->source == bind->target) return path;
  return path == bind->target ? bind->source : (bind->source == "/" ? "" : bind->source) + path.substr(bind->target.size());
}

const Volume* ViewDraft::elsewhere_at(std::string_view path) const {
  const auto found = std::ranges::find_if(elsewhere, [&](const auto& one) { return is_under(path, one.second->target); });
  return found == elsewhere.end() ? nullptr : found->second;
}

void ViewDraft::show(const std::string& path, Access access) {
  view().binds.push_back(
      {.source = path, .target = path, .readonly = access != Access::kWrite, .directory = kind_of(path) == PathKind::kDirectory});
}

void ViewDraft::add_readonly(const std::string& path) {
  if (std::find(paths.readonly.begin(), paths.readonly.end(), path) != paths.readonly.end() ||
      std::find(paths.writable.begin(), paths.writable.end(), path) != paths.writable.end())
    return;
  paths.readonly.push_back(path);
  std::string source = behind(path);
  const bool directory = kind_of(source) == PathKind::kDirectory;
  view().binds.push_back({.source = std::move(source), .target = path, .readonly = true, .directory = directory});
}

void ViewDraft::add_gap(std::string clause, std::string what, std::string where) {
  paths.gaps.push_back({.clause = std::move(clause), .what = std::move(what), .where = std::move(where)});
}

bool mounted_under(const std::string& path) { return is_under(path, "/dev") || is_under(path, "/proc") || is_under(path, "/sys"); }

Error inside_hidden(const FsEntry& entry, const std::string& hidden, HiddenBy by) {
  const bool writes = entry.access == Access::kWrite;
  const bool built_in = by == HiddenBy::kDefault;
  return Error(Code::kInvalidArgument,
               format("cannot make {} {} inside hidden {}", quoted(entry.path), writes ? "writable" : "readable", quoted(hidden)))
      .reason(format("{} (entry from {})",
                     built_in ? "it is one of the default secrets (filesystem.secrets, built-in), which are shown as a whole or not"
                              : "nothing in it can be shown alone",
                     to_string(entry.origin)))
      .next(built_in ? format("{} {} opens all of it; or put a copy of the one file into the workspace",
                              writes ? "--write" : "--read", policy::shell_word(hidden))
                     : "hide the other parts of that directory one by one, or drop one of the two entries");
}

}  // namespace belljar::backend
