// Which names an index of git holds (index-format(5)): a checkout on the host writes there. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace belljar::broker {

// Longest index that is read. Larger than that of any known repository.
inline constexpr std::size_t kMaxIndex = 256U << 20;

// What `git restore` or `git checkout` would take for a path outside of the work tree, or for git's own files, or what git could
// not read; one sentence. nullopt: every name stays in the work tree. Versions 2 to 4 with SHA-1 names.
std::optional<std::string> index_objection(std::string_view content);

}  // namespace belljar::broker
