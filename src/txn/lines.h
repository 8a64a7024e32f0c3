// Texts by their lines: which lines two texts share, hunks for a patch, and three texts merged.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace belljar::txn {

// Each with its newline; the last one may have none.
std::vector<std::string_view> split_lines(std::string_view text);

// A run of lines that both texts have, in order; what lies between two of them was changed.
struct Match {
  std::size_t left = 0, right = 0, count = 0;
};
// A longest common subsequence (Myers, "An O(ND) Difference Algorithm", 1986), or after kMostEdits edits a shorter one: the time is
// bounded whatever a command wrote. Ends with an empty match at the ends of both.
std::vector<Match> find_matches(const std::vector<std::string_view>& left, const std::vector<std::string_view>& right);
inline constexpr std::size_t kMostEdits = 2000;

// "@@ -1,3 +1,4 @@" and so on with three lines of context; empty when the texts are the same.
std::string unified_hunks(std::string_view left, std::string_view right);

// `ours` and `theirs` both came from `base`. nullopt: both changed the same lines, or lines that touch, in different ways.
std::optional<std::string> merge(std::string_view base, std::string_view ours, std::string_view theirs);

// Git's rule: a NUL in the first 8000 bytes.
bool is_binary(std::string_view text) noexcept;

}  // namespace belljar::txn
