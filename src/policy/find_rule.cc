// The one judge of file-system rules: the most specific rule wins, whatever order they were written in.
//
// A rule of the longest prefix needs no order between layers, and a person can predict it. Of two rules for
// the same path the stricter holds.
#include "belljar/policy.h"
#include "policy/file_rules.h"
#include "policy/paths.h"

namespace belljar {
// A glob counts as if it had been written out: one literal rule for each path it matches. So `**/.env` is as specific as
// the full path of the file it hides, and beats the rule of the directory above.
const FsEntry* find_rule(const Filesystem& filesystem, std::string_view path) noexcept {
  const FsEntry* best = nullptr;
  std::size_t best_length = 0;
  for (const FsEntry& entry : filesystem.entries) {
    std::size_t length = 0;
    if (entry.glob) {
      const auto covered = policy::glob_covers(entry.path, path);
      if (!covered) continue;
      length = *covered;
    } else {
      if (!policy::is_within(path, entry.path)) continue;
      length = entry.path == "/" ? 0 : entry.path.size();
    }
    // All candidates are prefixes of `path` that end at a component, so the longer one has more components.
    const bool wins = best == nullptr || length > best_length ||
                      (length == best_length && policy::strictness(entry.access) > policy::strictness(best->access));
    if (wins) best = &entry, best_length = length;
  }
  return best;
}

}  // namespace belljar
