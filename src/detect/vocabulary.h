// All words that the detector knows: which roles a word has (signs.h, words/), and what it weighs for the model (model.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "detect/model.h"
#include "detect/signs.h"

namespace belljar::detect {

// What a word can be: for the rows of patterns.cc, and for the model.
struct Meaning {
  Roles roles = 0, weighed = 0;
};

// Words by a hash of their first three bytes: one look-up decides nearly every one.
class Vocabulary {
 public:
  Vocabulary();
  static void add(Meaning& to, const Meaning& more) noexcept { to.roles |= more.roles, to.weighed |= more.weighed; }
  Meaning meaning(std::string_view word) const noexcept;
  // The longest word that begins `text`, of a script without blanks; its size.
  std::size_t longest(std::string_view text, Meaning& meaning) const noexcept;
  Roles first_roles() const noexcept { return first_; }
  const std::vector<const Pattern*>& beginning_with(std::size_t bit) const noexcept { return by_role_[bit]; }

 private:
  struct Entry {
    std::string_view text;
    bool open;
    Meaning meaning;
  };
  static std::size_t key(std::string_view text) noexcept;
  const std::vector<Entry>& list(std::string_view text) const noexcept;
  void add_words(std::string_view rows);
  void add_word(std::string_view word, Meaning meaning);

  std::array<std::uint64_t, 1024> maybe_{};                                  // a bit for each key that has a list
  std::vector<std::uint16_t> index_ = std::vector<std::uint16_t>(1U << 16);  // into `lists_`, 0: none
  std::vector<std::vector<Entry>> lists_{{}};
  std::array<std::vector<const Pattern*>, 64> by_role_;
  Roles first_ = 0;  // with which a pattern begins
};
const Vocabulary& vocabulary();  // made once

// A number is a number: which one says nothing, and a text in percent escapes is made of them.
constexpr std::string_view known_word(std::string_view word) noexcept { return word[0] >= '0' && word[0] <= '9' ? "0" : word; }

struct KnownWord {
  Meaning meaning;
  std::uint32_t hash = 0;  // of known_word()
  float weight = 0;
};
// Of a whole word between blanks and marks.
Meaning know_meaning(std::string_view word);
KnownWord know_word(std::string_view word);
// Of a word whose meaning is known.
KnownWord know_word(std::string_view word, Meaning meaning);

// The words of texts: few are many of each, and these are looked up once. What a word means is the same in every text, so the
// answers stay for the next one of the thread.
class WordCache {
 public:
  explicit WordCache(std::string_view text);
  // Of the word from `begin` to `end` in the text.
  KnownWord of(std::size_t begin, std::size_t end);

 private:
  static constexpr std::size_t kLongest = 16;  // bytes of a word that is kept
  static constexpr unsigned kBits = 13;
  struct Slot {
    std::uint64_t first = 0, second = 0;  // the word's bytes; none is 0
    KnownWord word;
  };
  static std::vector<Slot>& slots_of_thread();

  std::string_view text_;
  std::vector<Slot>& slots_;
};

}  // namespace belljar::detect
