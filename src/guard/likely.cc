// The trees, read from their rows at the first use: `heard share 0.25 =-0.1 assistant 0.5 =0 =0.2` is a tree whose first question
// is whether the share is at most 0.25; `=` begins a leaf.
#include "guard/likely.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

namespace belljar::guard {
namespace {

constexpr char kTreeRows[] =
#include "guard/likely_trees.inc"
    ;

struct Node {
  std::uint16_t trait = 0, other = 0;  // `other`: where the trait is larger; 0: a leaf
  float value = 0;                     // the threshold, or what the leaf says
};

float number_of(std::string_view text) noexcept {
  float number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string_view next_word(std::string_view& text) noexcept {
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

class Trees {
 public:
  Trees() {
    for (std::string_view rows(std::data(kTreeRows), std::size(kTreeRows) - 1); !rows.empty();) {
      const std::size_t end = std::min(rows.find('\n'), rows.size());
      std::string_view row = rows.substr(0, end);
      rows.remove_prefix(std::min(end + 1, rows.size()));
      const std::string_view which = next_word(row);
      if (which.empty()) continue;
      starts_[which == "heard" ? 0 : 1].push_back(nodes_.size());
      read(row);
    }
  }
  float odds(const Traits& traits, bool heard) const noexcept {
    float sum = 0;
    for (std::size_t at : starts_[heard ? 0 : 1]) {
      while (nodes_[at].other != 0) at = traits[nodes_[at].trait] <= nodes_[at].value ? at + 1 : at + nodes_[at].other;
      sum += nodes_[at].value;
    }
    return sum;
  }

 private:
  void read(std::string_view& row) {
    const std::string_view word = next_word(row);
    const std::size_t at = nodes_.size();
    nodes_.emplace_back();
    if (word.empty() || word[0] == '=') {
      nodes_[at].value = word.empty() ? 0 : number_of(word.substr(1));
      return;
    }
    nodes_[at].trait = static_cast<std::uint16_t>(std::min(find_trait(word), kTraitCount - 1));
    nodes_[at].value = number_of(next_word(row));
    read(row);
    nodes_[at].other = static_cast<std::uint16_t>(nodes_.size() - at);
    read(row);
  }
  std::vector<Node> nodes_;
  std::vector<std::size_t> starts_[2];
};

}  // namespace

float odds_of(const Traits& traits, bool heard) {
  static const Trees trees;
  return trees.odds(traits, heard);
}

}  // namespace belljar::guard
