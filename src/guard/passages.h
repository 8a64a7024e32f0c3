// Which passages of a text the detector finds suspicious, wide enough to hold what they order, and the sentence
// that stands in the place of one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/content_policy.h"
#include "detect/detect.h"

namespace belljar::guard {

struct Passage {
  std::size_t begin = 0, end = 0;  // bytes of the text
  std::vector<std::string> signs;  // names, heaviest first, at most three
};

// In their order, apart from each other, at most kMostPassages; without them the text is not suspicious. Empty: it is not as it is.
inline constexpr std::size_t kMostPassages = 8;
std::vector<Passage> suspicious_passages(std::string_view text, detect::Reader reader);

// `how`: how a model can see it, or empty. kShort: without the names of what was found, and where; they may read like signs
// themselves, next to what stands around them. Neither is suspicious by itself.
enum class Wording { kWhole, kShort };
std::string description_of(const Withheld& passage, std::string_view how, Wording wording = Wording::kWhole);

// Never inside a character: at most `limit`.
std::size_t cut_at(std::string_view text, std::size_t limit) noexcept;

}  // namespace belljar::guard
