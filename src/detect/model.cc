// The model's weights, read from their rows at the first use.
//
// Stems are read before words, since a word's weight is stored with that of its stem added: then the look-up
// of a word is one step. Words and pairs of words are stored by their hash in an open-addressing table that
// is at most half full; a small set of bits in front of it answers for nearly all unknown words without
// touching the table. Two words with the same hash would share a weight, which with 32 bits is rare, and the
// weights are trained with the same hashes.
#include "detect/model.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "detect/signs.h"

namespace belljar::detect {
namespace {

// A row each: kind, name or names, weight.
constexpr char kWeightRows[] =
#include "detect/weights.inc"
    ;
constexpr std::string_view kRows(kWeightRows, sizeof kWeightRows - 1);

template <typename Number>
Number number_of(std::string_view text) noexcept {
  Number number{};
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

Weights::Weights() {
  for (const bool stems : {true, false}) {  // a word's weight has its stem's in it
    for (std::string_view rows = kRows; !rows.empty();) {
      std::string_view row = cut(rows, '\n');
      const std::string_view kind = cut(row, ' ');
      const std::size_t blank = row.rfind(' ');
      if (kind.empty() || blank == std::string_view::npos || (kind == "stem") != stems) continue;
      read_row(kind, row.substr(0, blank), number_of<float>(row.substr(blank + 1)));
    }
  }
}

void Weights::read_row(std::string_view kind, std::string_view name, float weight) {
  const std::string_view first = cut(name, ' ');  // `name`: the second of a pair
  if (kind == "bias") bias_ = weight;
  else if (kind == "sentence") sentence_ = weight;
  else if (kind == "role") roles_[role_named(first) % 64] = weight;
  else if (kind == "order") orders_[role_named(first) % 64] = weight;
  else if (kind == "not") negated_[role_named(first) % 64] = weight;
  else if (kind == "pair") pairs_[role_named(first) % 64 * 64 + role_named(name) % 64] = weight;
  else if (kind == "mark") marks_[number_of<unsigned>(first) % 16] = weight;
  else if (kind == "sign") slot_for({FeatureKind::kSign, hash_of(first)}).weight = weight;
  else if (kind == "stem") slot_for({FeatureKind::kStem, hash_of(first)}).weight = weight;
  else if (kind == "word") word_slot(first).weight += weight;
  else if (kind == "two") slot_for({FeatureKind::kTwoWords, hash_of_two(hash_of(first), hash_of(name))}).weight = weight;
}

Weights::Slot& Weights::slot_for(Feature feature) {
  const std::uint32_t wanted = key(feature);
  maybe_[filter_index(wanted)] |= std::uint64_t{1} << filter_bit(wanted);
  std::size_t i = wanted >> kShift;
  while (slots_[i].key != 0 && slots_[i].key != wanted) i = (i + 1) % slots_.size();
  slots_[i].key = wanted;
  return slots_[i];
}

Weights::Slot& Weights::word_slot(std::string_view word) {
  const Feature feature{FeatureKind::kWord, hash_of(word)};
  const bool known = slot(feature) != nullptr;
  Slot& made = slot_for(feature);
  if (const std::string_view stem = stem_of(word); !known && !stem.empty()) made.weight = of({FeatureKind::kStem, hash_of(stem)});
  return made;
}

const Weights& weights() {
  static const Weights made;
  return made;
}

}  // namespace belljar::detect
