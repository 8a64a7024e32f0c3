// Which rule of the policy is behind an errno that the kernel gave a file call, where mounts hold the rules. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "belljar/policy.h"

namespace belljar::policy {

enum class FileUse { kRead, kWrite };  // kWrite: anything that changes a name or what it holds

// What is left where a rule is about the very name, a pattern for one: only the rule itself can give more (permit.h).
inline constexpr std::string_view kHiddenByRule = "nothing: the path is hidden";
inline constexpr std::string_view kKeptByRule = "reading: a rule is about this very name";

// What is left below `.git` under filesystem.protect = "all" alone: "default" judges the names that git obeys, and lets git work.
inline constexpr std::string_view kGitByDefault = "reading; filesystem.protect = \"default\" lets git work";

// What is left of a removal of the workspace's own `.git`.
inline constexpr std::string_view kGitRemoval =
    "git's own commands, a transaction (--txn), or --allow-git-removal (filesystem.allow_git_removal = true)";

struct FileRefusal {
  std::string rule;
  Origin origin;
  std::string allowed;
};

// The policy key that a refusal by this entry is told under; static.
std::string_view entry_key(const FsEntry& entry) noexcept;

// Only what is certain: EROFS for a change where the policy lets read and not write or protects the name, EBUSY for a move or
// removal of a name that it mounts something on, EACCES where it hides the path. EACCES of file modes is nobody's refusal, nor is
// what lies below /proc, /sys and /dev. `complete`: Effective::complete; `protect_origin`: of filesystem.protect.
std::optional<FileRefusal> find_refusal(const Filesystem& complete, const Origin& protect_origin, FileUse use,
                                        std::string_view path, int errnum);

}  // namespace belljar::policy
