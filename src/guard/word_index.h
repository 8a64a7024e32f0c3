// The words of a text by the sentence they stand in: which sentence says most of what a call says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace belljar::guard {

// A word by how it begins, whatever its ending: 32 bits of hash. Words that every text has count for none.
using WordKey = std::uint32_t;

class WordIndex {
 public:
  struct Sentence {
    std::uint32_t begin, end;  // bytes of the text
  };
  struct Place {
    WordKey key;
    std::uint32_t sentence;
  };

  WordIndex() = default;
  // Adds a normalised text; its sentences get numbers behind those that are there, `begin` counts from this text's start.
  void add(std::string_view text);
  // Orders what was added; before places_of.
  void finish();

  std::span<const Place> places_of(WordKey key) const noexcept;
  const std::vector<Sentence>& sentences() const noexcept { return sentences_; }
  bool has(WordKey key) const noexcept { return !places_of(key).empty(); }

 private:
  std::vector<Place> places_;  // by key, then by sentence; each pair once
  std::vector<Sentence> sentences_;
};

// The different keys of a text, at most `most`.
std::vector<WordKey> keys_of(std::string_view text, std::size_t most = 256);

namespace detail {
bool is_word_letter(char c) noexcept;
// Length of the word's part that counts, and how far to go on from its begin.
struct Cut {
  std::size_t length, step;
};
Cut cut_word(std::string_view word) noexcept;
WordKey key_of(std::string_view part) noexcept;  // 0: counts for none
}  // namespace detail

// Calls `each(key, begin, end)` for each word of a normalised text (detect/normal.h): letters and digits; of scripts without blanks
// each two characters that follow each other.
template <class Each>
void each_word(std::string_view text, Each each) {
  for (std::size_t at = 0; at < text.size();) {
    if (!detail::is_word_letter(text[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && detail::is_word_letter(text[end])) ++end;
    while (at < end) {
      const detail::Cut cut = detail::cut_word(text.substr(at, end - at));
      if (const WordKey key = detail::key_of(text.substr(at, cut.length)); key != 0) each(key, at, at + cut.length);
      at += cut.step;
    }
  }
}

}  // namespace belljar::guard
