// What rules of the file system mean, beside find_rule().
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "belljar/policy.h"
#include "policy/paths.h"

namespace belljar::policy {

// The larger, the less it allows.
constexpr int strictness(Access access) noexcept { return access == Access::kNone ? 2 : access == Access::kWrite ? 1 : 0; }

// Whether what is written to `path` goes to a layer of the sandbox that is discarded: no rule of a path further down says
// otherwise.
inline bool is_scratch(const Filesystem& filesystem, std::string_view path) {
  const FsEntry* const rule = find_rule(filesystem, path);
  return std::ranges::any_of(filesystem.scratch, [&](const std::string& scratch) {
    return is_within(path, scratch) && (rule == nullptr || !is_within(rule->path, scratch));
  });
}

}  // namespace belljar::policy
