// How likely it is that a text proposed an act, and not the user: boosted trees over what the call, the user's words and the
// sentence that shares most with the call have to do with each other. The rows of turn_rows.cc say what somebody thought of, and
// are traits among others; the trees say how much each is worth in turns that nobody thought of. They are data (likely_trees.inc),
// made by tools/train-chain; docs/design/guard.md says of what and what they are worth.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <string_view>

#include "belljar/turn.h"

namespace belljar::guard {

// A number each, 0 where it says nothing. Shares are from 0 to 1, counts are cut at a few.
inline constexpr std::string_view kTraitNames[] = {
    // The act. Classes in the order of CallClass.
    "reading", "writing", "running", "installing", "fetching", "sending", "secret-reading", "exfiltrating", "destructive",
    "privilege", "persistence", "commitment", "unread", "outward", "of-file", "weakens", "replaces", "payload", "brings", "tool",
    "read-before", "strangers", "accounts", "development", "products", "secrets", "call-words",
    // What the rows say of it.
    "asks", "own", "named-row", "delegated", "development-row", "copied", "exfiltration", "foreign-suspicious",
    "foreign-instructed", "foreign-mentioned", "brought-in", "weakened", "secret-copied", "act-spoken-of", "unsearched",
    // The user's words.
    "user-makes", "user-makes-any", "user-asks", "user-refers", "user-delegates", "user-forbids", "user-repairs", "question",
    "user-length", "wanted", "wants-other", "follows", "user-share", "user-words", "tool-share", "target-spoken-of", "named",
    // The words of the call in what came from elsewhere.
    "found-share", "nowhere", "texts", "shared", "shared-weight", "share", "one-place", "covers",
    // The sentence that has most of them, and its text.
    "sentence-of-user", "users-in-sentence", "act-word", "weighty-word", "direction", "protection", "assistant", "report", "blanks",
    "sentence-words", "hidden", "suspicious", "off-topic", "few-sentences", "text-of-user", "text-named", "pointed-at",
    "from-workspace", "from-network", "itself", "comment", "list-item", "at-end", "text-length"};
inline constexpr std::size_t kTraitCount = std::size(kTraitNames);
using Traits = std::array<float, kTraitCount>;

// kTraitCount: there is none of this name.
constexpr std::size_t find_trait(std::string_view name) noexcept {
  return static_cast<std::size_t>(std::ranges::find(kTraitNames, name) - std::begin(kTraitNames));
}

// Log-odds. `heard`: the user's words are known; each case has trees of its own.
float odds_of(const Traits& traits, bool heard);

// For who makes the trees: is told the traits of each act that is judged, and what the rows say of it.
class TurnProbe {
 public:
  using Watch = std::function<void(const Traits& traits, std::string_view row, Advice advice)>;
  static void watch(Turn& turn, Watch watch);
};

}  // namespace belljar::guard
