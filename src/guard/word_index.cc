#include "guard/word_index.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>
#include <vector>

#include "detect/model.h"
#include "shell/word_list.h"

namespace belljar::guard {
namespace detail {

bool is_word_letter(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (static_cast<unsigned char>(c) & 0x80U) != 0;
}

Cut cut_word(std::string_view word) noexcept {
  const auto is_rest = [&](std::size_t i) { return i < word.size() && (static_cast<unsigned char>(word[i]) & 0xC0U) == 0x80U; };
  const auto next = [&](std::size_t at) {
    ++at;
    while (is_rest(at)) ++at;
    return std::min(at, word.size());
  };
  const auto first = static_cast<unsigned char>(word[0]);
  if (first >= 0xE3) {  // no blanks: each two characters
    const std::size_t second = next(0);
    return {next(std::min(second, word.size() - 1)), second};
  }
  constexpr std::size_t kLetters = 6;
  std::size_t end = 0;
  for (std::size_t i = 0; i < kLetters && end < word.size(); ++i) end = next(end);
  // A script without blanks goes on where another ends.
  std::size_t step = end;
  while (step < word.size() && static_cast<unsigned char>(word[step]) < 0xE3) ++step;
  return {end, step};
}

WordKey key_of(std::string_view part) noexcept {
  constexpr std::string_view kCommon =
      "the and for with this that from are was were not you your our all any can has have had its but into out per via than then "
      "they them their there these those what which who when where will would about also only more some one two new old how here "
      "path conten file files text name title body subjec messag comman argume query url http https www com org net exampl string "
      "true false null none type value data json yaml yml txt html args "
      "und der die das den dem ein eine mit von fur auf ist sind nicht les des une est pour dans que sur los las una por con del "
      "para che per non della";
  const bool plain = (static_cast<unsigned char>(part[0]) & 0x80U) == 0;
  const bool digit = std::ranges::any_of(part, [](char c) { return c >= '0' && c <= '9'; });
  if (plain && part.size() < (digit ? 2U : 3U)) return 0;
  if (plain && shell::has_word(kCommon, part)) return 0;
  const WordKey key = detect::hash_of(part);
  return key == 0 ? 1 : key;
}

}  // namespace detail

namespace {
// Length of what ends a sentence at `at`; 0: nothing does.
std::size_t end_of_sentence(std::string_view text, std::size_t at) noexcept {
  if (text[at] == '\n') return 1;
  const bool blank = at + 1 < text.size() && (text[at + 1] == ' ' || text[at + 1] == '\n');
  if (blank && (text[at] == '.' || text[at] == '!' || text[at] == '?' || text[at] == ';')) return 1;
  constexpr std::string_view kWide[] = {"。", "！", "；", "？"};
  return std::ranges::find(kWide, text.substr(at, 3)) != std::end(kWide) ? 3 : 0;
}
}  // namespace

void WordIndex::add(std::string_view text) {
  std::size_t begin = 0;
  const auto add_sentence = [&](std::size_t end) {
    const auto number = static_cast<std::uint32_t>(sentences_.size());
    bool any = false;
    each_word(text.substr(begin, end - begin), [&](WordKey key, std::size_t, std::size_t) {
      places_.push_back({key, number});
      any = true;
    });
    if (any) sentences_.push_back({static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)});
    begin = end;
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (const std::size_t length = end_of_sentence(text, at); length > 0) add_sentence(at + length);
  }
  add_sentence(text.size());
}

void WordIndex::finish() {
  const auto before = [](const Place& a, const Place& b) { return a.key != b.key ? a.key < b.key : a.sentence < b.sentence; };
  std::ranges::sort(places_, before);
  const auto rest =
      std::ranges::unique(places_, [](const Place& a, const Place& b) { return a.key == b.key && a.sentence == b.sentence; });
  places_.erase(rest.begin(), rest.end());
  places_.shrink_to_fit();
}

std::span<const WordIndex::Place> WordIndex::places_of(WordKey key) const noexcept {
  const auto range = std::ranges::equal_range(places_, key, {}, &Place::key);
  return {range.begin(), range.end()};
}

std::vector<WordKey> keys_of(std::string_view text, std::size_t most) {
  std::vector<WordKey> keys;
  each_word(text, [&](WordKey key, std::size_t, std::size_t) {
    if (keys.size() < most && std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  });
  return keys;
}

}  // namespace belljar::guard
