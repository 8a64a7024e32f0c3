// Which names git reads as code, as a pointer, or as settings, at any depth. Pure: text in, role out.
//
// A git directory is `X/.git`, and any directory with objects and refs (a *bare* one, a submodule's, a common one) or with HEAD and
// commondir (a worktree's): a little more than is_git_directory() of setup.c takes for one. The first kind is told by the path
// alone. The second kind is told by what stands beside the name, so two questions follow from it:
//   - a name such as `config` counts only if the directory it would belong to is a git directory now (`up` levels above it);
//   - a *marker* (HEAD, objects, refs, commondir) that completes a git directory makes names count that were free until then.
// Both need the file system and are put by FileRules, through Surroundings.
//
// Compared as git and the file systems that ignore case do: folded (policy/protected.h), and `.git` by NTFS's `git~1`, trailing
// dots, spaces and streams, too (utf8.c and path.c of git, is_hfs_dotgit and is_ntfs_dotgit; CVE-2014-9390, CVE-2019-1353). Safe
// from any thread; allocates only for non-ASCII names.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "policy/protected.h"

namespace belljar::broker {

using policy::fold_name;
using policy::folds_to;

enum class GitName : std::uint8_t {
  kNone,
  kDotGit,        // the `.git` of a work tree, as a directory; as a file it is kPointer
  kControlDir,    // a directory on the way to a name below: hooks, info, objects, modules/**, worktrees/*, rebase-merge
  kConfig,        // config, config.worktree
  kPointer,       // `.git` file, gitdir, commondir
  kHook,          // hooks/* but samples: git runs it
  kSampleHook,    // hooks/*.sample: git never runs it
  kAttributes,    // info/attributes
  kAlternates,    // objects/info/alternates, http-alternates
  kTodo,          // rebase-merge/git-rebase-todo, sequencer/todo: may hold `exec` lines
  kLegacyRemote,  // remotes/*, branches/*: remotes outside of config
  kIndex,         // index, sharedindex.*: names that a checkout writes
  kOption,        // rebase-merge/strategy, sequencer/opts, rebase-apply/apply-opt, BISECT_NAMES ...: what git goes on with
  kMergeRecords,  // MERGE_RR: files that `git rerere` and `git commit` write to
  kProgram,       // gitweb/*, lazygit.yml, sl/config: what `git instaweb`, lazygit and sl run
  kModulesFile,   // .gitmodules of a work tree
};

struct GitRole {
  GitName name = GitName::kNone;
  int up = 0;  // the git directory is that many components above the name; 0 for `.git` itself
};

// What a path may mean to git. At most kMax meanings: `hooks/config` is a hook of the directory above and the config of `hooks`.
struct GitRoles {
  static constexpr int kMax = 6;
  GitRole certain;                         // the path alone says so, by a component `.git`; kNone: it does not
  std::array<GitRole, kMax> if_git_dir{};  // each holds if the directory `up` levels above is a git directory
  int count = 0;                           // of if_git_dir; 0 when `certain` says all
};

// `path` is absolute and normal. With `is_dir` the name is a directory, or is to become one.
GitRoles git_roles(std::string_view path, bool is_dir);
// The same below a directory that is known to be a git directory: `relative` has no leading slash.
GitName name_in_git_dir(std::string_view relative, bool is_dir);

// Below a directory that is a git directory by what stands in it: a name of git's own, that it reads or writes, not some file of a
// work tree that looks like one. `relative` has no leading slash.
bool is_git_layout(std::string_view relative);

// A name that may complete a git directory: HEAD and commondir, or objects and refs.
bool is_git_marker(std::string_view name);

// A component that git or a file system may take for `.git`.
bool is_dot_git(std::string_view name);
}  // namespace belljar::broker
