// Words and their roles, looked up fast: every word of every text passes here.
//
// Words are listed by a hash of their first three bytes, so that one look-up gives the few candidates. A word
// may be open (`instruct*`), which covers all its endings. Chinese is written without blanks, so there the
// longest known word that begins at a place counts. In Arabic the article and some one-letter words are
// written together with the next word and are taken off first. Texts repeat few words many times; WordCache
// keeps their answers.
#include "detect/vocabulary.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "detect/signs.h"

namespace belljar::detect {
namespace {

bool is_arabic(char c) noexcept { return static_cast<unsigned char>(c) >= 0xD8 && static_cast<unsigned char>(c) <= 0xDB; }

// The article, and words of one letter that are written together with the next: "and", "for", "with", "so".
std::string_view without_article(std::string_view word) noexcept {
  for (const std::string_view joined : {"و", "ف", "ب", "ك"}) {
    if (word.size() > 6 && word.starts_with(joined)) word.remove_prefix(joined.size());
  }
  for (const std::string_view article : {"ال", "لل"}) {
    if (word.starts_with(article)) return word.substr(article.size());
  }
  return word;
}

}  // namespace

Vocabulary::Vocabulary() {
  for (const std::string_view list : word_lists()) add_words(list);
  for (const Pattern& pattern : patterns()) {
    first_ |= pattern.roles[0];
    for (Roles bits = pattern.roles[0]; bits != 0; bits &= bits - 1)
      by_role_[static_cast<std::size_t>(std::countr_zero(bits))].push_back(&pattern);
  }
}

Meaning Vocabulary::meaning(std::string_view word) const noexcept {
  Meaning result;
  if (word.size() < 2) return result;
  for (const Entry& entry : list(word)) {
    const std::size_t size = entry.text.size();
    if (entry.open ? word.size() < size : word.size() != size) continue;
    if (entry.open && word.find('_', size) != std::string_view::npos) continue;  // `model_classes` is a name of code
    if (word[size - 1] == entry.text[size - 1] && std::memcmp(word.data(), entry.text.data(), size) == 0)
      add(result, entry.meaning);
  }
  return result;
}

std::size_t Vocabulary::longest(std::string_view text, Meaning& meaning) const noexcept {
  std::size_t size = 0;
  if (text.size() < 2) return 0;
  for (const Entry& entry : list(text)) {
    if (entry.text.size() < size || !text.starts_with(entry.text)) continue;
    if (entry.text.size() > size) meaning = {};
    size = entry.text.size();
    add(meaning, entry.meaning);
  }
  return size;
}

std::size_t Vocabulary::key(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) -> std::uint32_t { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
  return ((byte(0) | (byte(1) << 8U) | (byte(2) << 16U)) * 0x9E3779B1U) >> 16U;
}

// Nearly every word that means nothing ends here, at a few bytes that stay in the cache.
const std::vector<Vocabulary::Entry>& Vocabulary::list(std::string_view text) const noexcept {
  const std::size_t wanted = key(text);
  return lists_[((maybe_[wanted / 64] >> (wanted % 64)) & 1U) == 0 ? 0 : index_[wanted]];
}

void Vocabulary::add_words(std::string_view rows) {
  Roles roles = 0;
  bool weighed = false;
  while (!rows.empty()) {
    std::string_view row = cut(rows, '\n');
    weighed = weighed || row == "weighed";
    const std::size_t colon = row.find(':');
    if (row.starts_with('#') || (colon == std::string_view::npos && !row.starts_with(' '))) continue;
    if (!row.starts_with(' ')) {
      roles = 0;
      for (std::string_view names = cut(row, ':'); !names.empty();) {
        if (const unsigned bit = role_named(cut(names, ' ')); bit < 64) roles |= role(bit);
      }
    }
    while (!row.empty()) {
      if (const std::string_view word = cut(row, ' '); word.size() >= 2) add_word(word, {weighed ? 0 : roles, roles});
    }
  }
}

void Vocabulary::add_word(std::string_view word, Meaning meaning) {
  const bool open = word.ends_with('*');
  if (open) word.remove_suffix(1);
  const std::size_t wanted = key(word);
  std::uint16_t& list = index_[wanted];
  maybe_[wanted / 64] |= std::uint64_t{1} << (wanted % 64);
  if (list == 0) {
    list = static_cast<std::uint16_t>(lists_.size());
    lists_.emplace_back();
  }
  for (Entry& entry : lists_[list]) {
    if (entry.text == word && entry.open == open) {
      add(entry.meaning, meaning);
      return;
    }
  }
  lists_[list].push_back({word, open, meaning});
}

const Vocabulary& vocabulary() {
  static const Vocabulary made;
  return made;
}

KnownWord know_word(std::string_view word, Meaning meaning) {
  const std::string_view known = known_word(word);
  const std::uint32_t hash = hash_of(known);
  return {meaning, hash, weights().of_word(known, hash)};
}

namespace {

// One letter too many, too few, another, or two that changed places.
bool is_nearly(std::string_view word, std::string_view known) noexcept {
  if (word.size() + 1 < known.size() || word.size() > known.size() + 1) return false;
  const auto [left, right] = std::ranges::mismatch(word, known);
  std::string_view rest(left, word.end()), wanted(right, known.end());
  if (word.size() > known.size()) return rest.substr(1) == wanted;
  if (word.size() < known.size()) return rest == wanted.substr(1);
  if (rest.size() < 2) return true;
  return rest.substr(1) == wanted.substr(1) || (rest[0] == wanted[1] && rest[1] == wanted[0] && rest.substr(2) == wanted.substr(2));
}

// An override needs one of these words, and may misspell it by a letter to get past the lists. Of shorter words too many are nearly
// another; so are two of these.
std::string_view meant_by(std::string_view word) noexcept {
  constexpr std::string_view kKnown[] = {"instructions", "instruction", "previous",  "disregard",
                                         "guidelines",   "directives",  "assistant", "restrictions"};
  constexpr std::size_t kFewest = 7, kMost = 13;
  if (word.size() < kFewest || word.size() > kMost || word == "precious" || word == "pervious") return {};
  for (const std::string_view known : kKnown) {
    const bool alike = word[0] == known[0] || word.ends_with(known.substr(known.size() - 3));  // most words end the search here
    if (alike && is_nearly(word, known)) return known;
  }
  return {};
}

}  // namespace

Meaning know_meaning(std::string_view word) {
  const Vocabulary& known = vocabulary();
  Meaning meaning = known.meaning(word);
  if (const std::size_t cut = word.rfind('\''); cut != std::string_view::npos)
    Vocabulary::add(meaning, known.meaning(word.substr(cut + 1)));  // l'injection
  // `prompt_injection`: a name of code says what it is about, and orders nothing.
  for (std::size_t at = word.find('_'); meaning.weighed == 0 && at != std::string_view::npos; at = word.find('_', at + 1)) {
    const std::size_t begin = word.substr(0, at).rfind('_') + 1;
    meaning.weighed |= (known.meaning(word.substr(begin, at - begin)).weighed | known.meaning(word.substr(at + 1)).weighed) & kTalk;
  }
  if (const std::string_view meant = meaning.weighed == 0 ? meant_by(word) : std::string_view(); !meant.empty())
    meaning = known.meaning(meant);
  if (meaning.weighed == 0 && is_arabic(word[0])) meaning = known.meaning(without_article(word));
  return meaning;
}

KnownWord know_word(std::string_view word) { return know_word(word, know_meaning(word)); }

std::vector<WordCache::Slot>& WordCache::slots_of_thread() {
  thread_local std::vector<Slot> slots(std::size_t{1} << kBits);
  return slots;
}

WordCache::WordCache(std::string_view text) : text_(text), slots_(slots_of_thread()) {}

KnownWord WordCache::of(std::size_t begin, std::size_t end) {
  const std::size_t size = end - begin;
  if (size > kLongest) return know_word(text_.substr(begin, size));
  std::uint64_t first = 0, second = 0;
  if (begin + kLongest <= text_.size()) {
    std::memcpy(&first, text_.data() + begin, 8), std::memcpy(&second, text_.data() + begin + 8, 8);
  } else {
    char last[kLongest] = {};
    std::memcpy(last, text_.data() + begin, size);
    std::memcpy(&first, last, 8), std::memcpy(&second, last + 8, 8);
  }
  // Only the word's own bytes; the first stands lowest.
  if (size <= 8) first &= ~std::uint64_t{0} >> (64 - 8 * size), second = 0;
  else second &= ~std::uint64_t{0} >> (128 - 8 * size);
  Slot& slot = slots_[((first * 0x9E3779B97F4A7C15U) ^ (second * 0xC2B2AE3D27D4EB4FU)) >> (64 - kBits)];
  if (slot.first != first || slot.second != second) slot = {first, second, know_word(text_.substr(begin, size))};
  return slot.word;
}

}  // namespace belljar::detect
