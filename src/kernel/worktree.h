// The repository of a linked work tree (git-worktree(1)): a workspace whose `.git` is a file, and whose commits go elsewhere.
#pragma once

#include <string>

namespace belljar::kernel {

// `path` holds what makes a directory a git directory: HEAD, objects, refs (gitrepository-layout(5)).
bool is_git_directory(const std::string& path);

// The common git directory of the repository that `workspace` is a linked work tree of, canonical; empty when it is none. Both have
// to say so: the workspace's `.git` names an entry of the repository's `worktrees`, and that entry names the workspace's `.git`.
// So a `.git` file alone, which anybody may have written, leads nowhere; nor does a symbolic link. It is called `.git`: any other
// directory may hold more than a repository, the work trees of a bare one or what was laid out to look like one. The repository
// belongs to whom the workspace belongs to.
std::string repository_of_worktree(const std::string& workspace);

}  // namespace belljar::kernel
