// A linear model of what sentences say: logistic regression over the roles of words (signs.h), the order they stand in, what the
// rows of patterns.cc found, and some words and pairs of words. The rows say what somebody thought of; the weights say how much
// each of their parts is worth in texts that nobody thought of. The weights are data (weights.inc), made by tools/train-detector
// from tests/detect/corpus; docs/design/guard.md says how and what it is worth.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "detect/signs.h"

namespace belljar::detect {

// What a sentence can have. Each feature is a kind and a number; words and pairs of words count as hashes.
enum class FeatureKind : std::uint8_t { kRole, kOrder, kNegated, kPair, kSign, kWord, kTwoWords, kSentence, kStem, kMark };

struct Feature {
  FeatureKind kind;
  std::uint32_t id;  // a role; first role * 64 + second; a hash
  bool operator==(const Feature&) const = default;
};

constexpr std::uint32_t hash_start = 0x811C9DC5U;
constexpr std::uint32_t hash_more(std::uint32_t hash, char c) noexcept {
  return (hash ^ static_cast<unsigned char>(c)) * 0x01000193U;
}
constexpr std::uint32_t hash_of(std::string_view text) noexcept {
  std::uint32_t hash = hash_start;
  for (const char c : text) hash = hash_more(hash, c);
  return hash;
}
// How a word begins, whatever its ending: enough for most languages to know it by. Empty for short words.
constexpr std::string_view stem_of(std::string_view word) noexcept {
  const auto first = word.empty() ? 0U : static_cast<unsigned char>(word[0]);
  const std::size_t size = first < 0x80 ? 5 : first >= 0xEA && first <= 0xED ? 6 : first >= 0xE0 ? 9 : 10;  // Korean: two syllables
  return word.size() < size ? std::string_view{} : word.substr(0, size);
}
constexpr std::uint32_t hash_of_two(std::uint32_t first, std::uint32_t second) noexcept { return (first * 0x9E3779B1U) ^ second; }

// What a sentence has besides its words.
enum class Mark : std::uint8_t {
  kAddress,     // http://, an @ of mail
  kToBeFilled,  // {name}, <name>, ${name}
  kKey,         // begins `word:` or `[word]`
  kHidden,      // begins right behind `<!--`
  kComment,     // begins a line of a comment
  kQuoted,      // has a quote
  kCode,        // has `=`, `(` at a word, `;`
  kShell,       // has `$(`, a pipe, an option
  kHomeFile,    // ~/ or a name that begins with a dot
  kRoleTag,     // [system], (system_message), <admin note>: whose words these are
  kCount
};

class Weights {
 public:
  Weights();  // of weights.inc
  float of(Feature feature) const noexcept {
    switch (feature.kind) {
      case FeatureKind::kRole:
        return roles_[feature.id];
      case FeatureKind::kOrder:
        return orders_[feature.id];
      case FeatureKind::kNegated:
        return negated_[feature.id];
      case FeatureKind::kPair:
        return pairs_[feature.id];
      case FeatureKind::kSentence:
        return sentence_;
      case FeatureKind::kMark:
        return marks_[feature.id % 16];
      default:
        return hashed(feature);
    }
  }
  // Its stem's weight included.
  float of_word(std::string_view word, std::uint32_t hash) const noexcept {
    if (const Slot* const known = slot({FeatureKind::kWord, hash}); known != nullptr) return known->weight;
    const std::string_view stem = stem_of(word);
    return stem.empty() ? 0 : hashed({FeatureKind::kStem, hash_of(stem)});
  }
  float bias() const noexcept { return bias_; }

 private:
  struct Slot {
    std::uint32_t key = 0;
    float weight = 0;
  };
  static std::uint32_t key(Feature feature) noexcept {
    const std::uint32_t mixed = (feature.id ^ (static_cast<std::uint32_t>(feature.kind) * 0x85EBCA6BU)) * 0xC2B2AE35U;
    return mixed == 0 ? 1 : mixed;
  }
  const Slot* slot(Feature feature) const noexcept {
    const std::uint32_t wanted = key(feature);
    if (((maybe_[filter_index(wanted)] >> filter_bit(wanted)) & 1U) == 0) return nullptr;
    for (std::size_t i = wanted >> kShift;; i = (i + 1) % slots_.size()) {
      if (slots_[i].key == wanted) return &slots_[i];
      if (slots_[i].key == 0) return nullptr;
    }
  }
  float hashed(Feature feature) const noexcept {
    const Slot* const known = slot(feature);
    return known == nullptr ? 0 : known->weight;
  }
  void read_row(std::string_view kind, std::string_view name, float weight);
  Slot& slot_for(Feature feature);
  Slot& word_slot(std::string_view word);

  // Nearly every word and pair of words is unknown, which a set of few bytes says: a bit for the highest 18 of a key.
  static std::size_t filter_index(std::uint32_t key) noexcept { return key >> 20U; }
  static unsigned filter_bit(std::uint32_t key) noexcept { return (key >> 14U) & 63U; }
  std::uint64_t maybe_[4096] = {};

  static constexpr unsigned kBits = 16;
  static constexpr unsigned kShift = 32 - kBits;
  float roles_[64] = {}, orders_[64] = {}, negated_[64] = {}, pairs_[std::size_t{64} * 64] = {};
  float marks_[16] = {};
  float sentence_ = 0, bias_ = 0;
  std::vector<Slot> slots_ = std::vector<Slot>(std::size_t{1} << kBits);  // open addressing; at most half full
};
const Weights& weights();

}  // namespace belljar::detect
