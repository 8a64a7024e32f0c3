#include "broker/git_names.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <string_view>

namespace belljar::broker {
namespace {

constexpr std::string_view kModulesFile = ".gitmodules";

// NTFS: trailing dots and spaces do not count, a colon starts a stream's name, `~1` is the short name (is_ntfs_dotgit).
bool is_ntfs_dot_git(std::string_view name) noexcept {
  const std::size_t stream = name.find(':');
  if (stream != std::string_view::npos) name = name.substr(0, stream);
  while (!name.empty() && (name.back() == '.' || name.back() == ' ')) name.remove_suffix(1);
  return folds_to(name, ".git") || folds_to(name, "git~1");
}

// The components of a path, from the end: part(0) is the name itself.
class ReverseComponents {
 public:
  explicit ReverseComponents(std::string_view path) noexcept : rest_(path) {}
  // Empty when there is none.
  std::string_view next() noexcept {
    while (rest_.ends_with('/')) rest_.remove_suffix(1);
    const std::size_t slash = rest_.rfind('/');
    const std::string_view part = slash == std::string_view::npos ? rest_ : rest_.substr(slash + 1);
    rest_.remove_suffix(part.size());
    return part;
  }

 private:
  std::string_view rest_;
};

bool is_any(std::string_view name, std::initializer_list<std::string_view> list) {
  return std::any_of(list.begin(), list.end(), [&](std::string_view one) { return folds_to(name, one); });
}

std::string_view first_of(std::string_view path) noexcept { return path.substr(0, path.find('/')); }
std::string_view after_first(std::string_view path) noexcept {
  const std::size_t slash = path.find('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
}

GitName file_or_dir(GitName file, bool is_dir) noexcept { return is_dir ? GitName::kControlDir : file; }

GitName hook(std::string_view below, bool is_dir) {
  if (is_dir) return GitName::kControlDir;
  const bool sample = below.find('/') == std::string_view::npos && fold_name(below).ends_with(".sample");
  return sample ? GitName::kSampleHook : GitName::kHook;
}

GitName in_objects(std::string_view below, bool is_dir) {
  if (!folds_to(first_of(below), "info")) return GitName::kNone;
  const std::string_view name = after_first(below);
  if (name.empty()) return GitName::kControlDir;
  return is_any(name, {"alternates", "http-alternates"}) ? file_or_dir(GitName::kAlternates, is_dir) : GitName::kNone;
}

// A base of a split index, git-update-index(1): sharedindex.<hash>.
bool is_shared_index(std::string_view name) { return name.size() > 12 && fold_name(name).starts_with("sharedindex."); }

// Names of one git directory, its worktrees/ and modules/ aside. gitrepository-layout(5).
GitName own_name(std::string_view relative, bool is_dir) {
  const std::string_view first = first_of(relative);
  const std::string_view below = after_first(relative);
  if (below.empty()) {
    if (is_any(first, {"config", "config.worktree"})) return file_or_dir(GitName::kConfig, is_dir);
    if (is_any(first, {"commondir", "gitdir"})) return file_or_dir(GitName::kPointer, is_dir);
    if (folds_to(first, "index") || is_shared_index(first)) return file_or_dir(GitName::kIndex, is_dir);
    if (folds_to(first, "merge_rr")) return file_or_dir(GitName::kMergeRecords, is_dir);
    if (folds_to(first, "lazygit.yml")) return file_or_dir(GitName::kProgram, is_dir);
    if (folds_to(first, "bisect_names")) return file_or_dir(GitName::kOption, is_dir);
    const bool leads = is_any(
        first, {"hooks", "info", "objects", "remotes", "branches", "rebase-merge", "rebase-apply", "sequencer", "gitweb", "sl"});
    return leads ? GitName::kControlDir : GitName::kNone;
  }
  if (folds_to(first, "hooks")) return hook(below, is_dir);
  if (folds_to(first, "objects")) return in_objects(below, is_dir);
  if (folds_to(first, "info") && folds_to(below, "attributes")) return file_or_dir(GitName::kAttributes, is_dir);
  if (is_any(first, {"remotes", "branches"})) return file_or_dir(GitName::kLegacyRemote, is_dir);
  if (folds_to(first, "gitweb") || (folds_to(first, "sl") && folds_to(below, "config")))
    return file_or_dir(GitName::kProgram, is_dir);
  if (folds_to(first, "rebase-merge") && folds_to(below, "git-rebase-todo")) return file_or_dir(GitName::kTodo, is_dir);
  if (folds_to(first, "sequencer") && folds_to(below, "todo")) return file_or_dir(GitName::kTodo, is_dir);
  const bool option = (folds_to(first, "sequencer") && folds_to(below, "opts")) ||
                      (is_any(first, {"rebase-merge", "rebase-apply"}) &&
                       is_any(below, {"strategy", "strategy_opts", "gpg_sign_opt", "apply-opt", "author-script"}));
  return option ? file_or_dir(GitName::kOption, is_dir) : GitName::kNone;
}

// A module's name may hold slashes: `modules/a/hooks/x` is a hook of the module `a` or some file of the module `a/hooks`. Hooks are
// therefore told by what stands beside them, and so is everything of a module with a slash.
GitName in_modules(std::string_view relative, bool is_dir) {
  const std::string_view below = after_first(after_first(relative));
  if (below.empty()) return GitName::kControlDir;
  const GitName name = name_in_git_dir(below, is_dir);
  return name == GitName::kHook || name == GitName::kSampleHook || name == GitName::kProgram ? GitName::kNone : name;
}

void add(GitRoles& roles, GitName name, int up) {
  if (name != GitName::kNone && roles.count < GitRoles::kMax)
    roles.if_git_dir[static_cast<std::size_t>(roles.count++)] = {name, up};
}

// The meanings that depend on what stands above: as the name of a git directory one to three levels up, and of its worktrees.
void add_by_neighbours(std::string_view path, bool is_dir, GitRoles& roles) {
  std::size_t from = path.size();
  for (int up = 1; up <= 5 && from > 0; ++up) {
    from = path.rfind('/', from - 1);
    if (from == std::string_view::npos) return;
    const std::string_view relative = path.substr(from + 1);
    const bool worktree = up >= 3 && folds_to(first_of(relative), "worktrees");
    if (up <= 3) add(roles, own_name(relative, is_dir), up);
    if (worktree) add(roles, own_name(after_first(after_first(relative)), is_dir), up);
  }
}

}  // namespace

bool is_dot_git(std::string_view name) {
  if (name.size() < 4) return false;
  const char first = name.front();
  if (first != '.' && (first | 0x20) != 'g' && static_cast<unsigned char>(first) < 0x80) return false;
  return folds_to(name, ".git") || is_ntfs_dot_git(name);
}

bool is_git_layout(std::string_view relative) {
  return after_first(relative).empty() ||
         is_any(first_of(relative), {"logs", "refs", "objects", "info", "hooks", "rr-cache", "rebase-merge", "rebase-apply",
                                     "sequencer", "worktrees", "modules", "lost-found", "remotes", "branches", "gitweb"});
}

bool is_git_marker(std::string_view name) { return is_any(name, {"head", "objects", "refs", "commondir"}); }

GitName name_in_git_dir(std::string_view relative, bool is_dir) {
  const std::string_view first = first_of(relative);
  if (folds_to(first, "worktrees")) {
    const std::string_view below = after_first(after_first(relative));
    return below.empty() ? GitName::kControlDir : name_in_git_dir(below, is_dir);
  }
  if (folds_to(first, "modules")) return in_modules(relative, is_dir);
  return own_name(relative, is_dir);
}

GitRoles git_roles(std::string_view path, bool is_dir) {
  GitRoles roles;
  ReverseComponents parts(path);
  std::size_t length = path.size();
  int up = 0;
  for (std::string_view part = parts.next(); !part.empty(); part = parts.next(), ++up) {
    // A file of the work tree, unless the git directory that it lies in reads it by another name (remotes/NAME).
    if (up == 0 && part.size() >= kModulesFile.size() && folds_to(part, kModulesFile))
      roles.certain = {file_or_dir(GitName::kModulesFile, is_dir), 0};
    if (is_dot_git(part)) {
      if (up == 0) {
        roles.certain = {is_dir ? GitName::kDotGit : GitName::kPointer, 0};
        return roles;
      }
      const std::size_t start = static_cast<std::size_t>(part.data() - path.data()) + part.size() + 1;
      const GitName name = name_in_git_dir(path.substr(start, length - start), is_dir);
      if (name != GitName::kNone || roles.certain.name == GitName::kNone) roles.certain = {name, up};
      break;
    }
  }
  const bool settled = roles.certain.name != GitName::kNone && roles.certain.name != GitName::kControlDir &&
                       roles.certain.name != GitName::kModulesFile;
  if (!settled) add_by_neighbours(path, is_dir, roles);
  return roles;
}

}  // namespace belljar::broker
