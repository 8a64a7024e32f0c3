// Which rule is behind an errno of the kernel.
//
// Mounts hold the rules, so the kernel answers EROFS, EBUSY or EACCES and names no rule. The policy is asked
// backwards: which rule would make this very call fail with this very errno? If none would, the errno came
// from file modes or the like and is no refusal of ours: a wrong answer would send people to change a policy
// that is not to blame.
#include "policy/refusal.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>

#include "base/format.h"
#include "belljar/policy.h"
#include "policy/defaults.h"
#include "policy/paths.h"
#include "policy/protected.h"

namespace belljar::policy {
namespace {

// What nobody's policy closed, or only the built-in ground rule ("/" may be read).
std::string key_of(const FsEntry& rule, std::string_view key_of_default) {
  return rule.origin.layer == "built-in" ? std::string(key_of_default) : "filesystem.entries";
}

// A mount point keeps its name: that of an entry, the ancestors of one, and what `protect` covers. Any other is the host's own.
std::optional<FileRefusal> find_held_name(const Filesystem& complete, const Origin& protect_origin, const FsEntry& rule,
                                          std::string_view path) {
  constexpr std::string_view kAllowed = "leaving the name where it is";
  if (rule.access != Access::kWrite && rule.path == path)
    return FileRefusal{std::string(entry_key(rule)), rule.origin, std::string(kAllowed)};
  if (rule.access != Access::kWrite) return std::nullopt;
  if (!protected_name_in(path).empty()) return FileRefusal{"filesystem.protect", protect_origin, std::string(kAllowed)};
  const auto below = std::ranges::find_if(complete.entries, [&](const FsEntry& entry) {
    return !entry.glob && entry.access != Access::kWrite && is_within(entry.path, path);
  });
  if (below == complete.entries.end()) return std::nullopt;
  return FileRefusal{std::string(entry_key(*below)), below->origin,
                     format("leaving the name where it is: {} lies below", below->path)};
}

}  // namespace

std::string_view entry_key(const FsEntry& entry) noexcept {
  return entry.kind == RuleKind::kDefaultSecret ? "filesystem.secrets" : "filesystem.entries";
}

std::optional<FileRefusal> find_refusal(const Filesystem& complete, const Origin& protect_origin, FileUse use,
                                        std::string_view path, int errnum) {
  for (const std::string_view own : {"/proc", "/sys", "/dev"}) {
    if (is_within(path, own)) return std::nullopt;
  }
  const FsEntry* rule = find_rule(complete, path);
  if (rule == nullptr) return std::nullopt;
  if (errnum == EBUSY) return use == FileUse::kWrite ? find_held_name(complete, protect_origin, *rule, path) : std::nullopt;
  if (rule->access == Access::kNone && errnum == EACCES) {
    return FileRefusal{std::string(entry_key(*rule)), rule->origin, format("nothing below {}: it is hidden", rule->path)};
  }
  if (use != FileUse::kWrite || errnum != EROFS) return std::nullopt;
  if (rule->access == Access::kRead)
    return FileRefusal{key_of(*rule, "filesystem.writable_roots"), rule->origin,
                       "reading; writes only below the writable directories"};
  if (rule->access == Access::kWrite && !protected_name_in(path).empty())
    return FileRefusal{"filesystem.protect", protect_origin,
                       "reading; what git, editors and agents outside would run stays as it is"};
  return std::nullopt;
}

}  // namespace belljar::policy
