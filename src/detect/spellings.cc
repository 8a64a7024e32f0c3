// Spellings that a model reads through and a list of words does not: numbers for letters, morse, l33t, lettres in teh wrnog oredr,
// and words pulled apart. Each gives the whole text again, as it may be read; texts beyond 8 KiB are left alone.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "detect/ascii.h"
#include "detect/normal.h"
#include "detect/work.h"

namespace belljar::detect {
namespace {

bool is_any(char c, std::string_view of) noexcept { return of.find(c) != std::string_view::npos; }

// --- numbers: 105 103 110, 69 67 6e, 0x69 0x67, 01101001 -------------------------------------------------------------------------

int digit(char c) noexcept {
  return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

struct Base {
  int base;
  std::size_t shortest, longest;  // digits of a letter
};
constexpr Base kBases[] = {{2, 7, 8}, {8, 3, 3}, {10, 2, 3}, {16, 2, 2}};

// A printable letter, or '\0'.
char letter_of(std::string_view word, const Base& base) noexcept {
  if (base.base == 16 && (word.starts_with("0x") || word.starts_with("0X"))) word.remove_prefix(2);
  if (word.size() < base.shortest || word.size() > base.longest) return '\0';
  int code = 0;
  for (const char c : word) {
    if (digit(c) >= base.base) return '\0';
    code = code * base.base + digit(c);
  }
  return code == '\n' || (code >= 0x20 && code < 0x7F) ? static_cast<char>(code) : '\0';
}

bool mostly_words(std::string_view text) noexcept {
  const auto fine = std::ranges::count_if(text, [](char c) { return is_letter(c) || c == ' '; });
  return text.size() >= 12 && static_cast<std::size_t>(fine) * 10 >= text.size() * 8;
}

// Twelve words in a row that begin with a digit, as every number of a printable letter does.
bool has_numbers(std::string_view text) noexcept {
  int row = 0;
  bool apart = true;
  for (const char c : text) {
    const bool blank = c == ' ' || c == ',' || c == '\n';
    if (apart && !blank) row = is_digit(c) ? row + 1 : 0;
    if (row >= 12) return true;
    apart = blank;
  }
  return false;
}

void open_numbers(std::string_view text, std::vector<Layer>& layers) {
  if (!has_numbers(text)) return;
  constexpr std::string_view kBetween = " ,;\n\t[]()";
  for (const Base& base : kBases) {
    std::string letters;
    std::size_t begin = 0, end = 0;
    const auto close = [&] {
      if (mostly_words(letters))
        layers.push_back({"numbers", letters, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)});
      letters.clear();
    };
    for (std::size_t i = 0; i < text.size();) {
      std::size_t stop = i;
      while (stop < text.size() && !is_any(text[stop], kBetween)) ++stop;
      const char c = stop > i ? letter_of(text.substr(i, stop - i), base) : ' ';
      if (stop > i && c == '\0') close();
      if (stop > i && c != '\0') {
        if (letters.empty()) begin = i;
        letters += c, end = stop;
      }
      i = std::max(stop, i) + 1;
    }
    close();
  }
}

// --- morse -----------------------------------------------------------------------------------------------------------------------

constexpr std::string_view kMorse[] = {".-",   "-...", "-.-.", "-..",  ".",   "..-.", "--.",  "....", "..",
                                       ".---", "-.-",  ".-..", "--",   "-.",  "---",  ".--.", "--.-", ".-.",
                                       "...",  "-",    "..-",  "...-", ".--", "-..-", "-.--", "--.."};

void open_morse(std::string_view text, std::vector<Layer>& layers) {
  if (std::ranges::count_if(text, [](char c) { return is_any(c, ".-/ "); }) < 40) return;
  std::string letters;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size();) {
    std::size_t stop = i;
    while (stop < text.size() && (text[stop] == '.' || text[stop] == '-')) ++stop;
    const auto* const found = std::ranges::find(kMorse, text.substr(std::min(i, text.size()), stop - i));
    const bool slash = stop == i && i < text.size() && (text[i] == '/' || text[i] == '|');
    if (stop > i && found != std::end(kMorse)) {
      if (letters.empty()) begin = i;
      letters += static_cast<char>('a' + (found - std::begin(kMorse)));
      i = stop;
    } else if (slash || (i < text.size() && text[i] == ' ')) {
      if (slash) letters += ' ';
      ++i;
    } else {
      if (letters.size() >= 12)
        layers.push_back({"morse", letters, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(i)});
      letters.clear();
      i = stop + 1;
    }
  }
}

// --- words -----------------------------------------------------------------------------------------------------------------------

// The words that an instruction to a model needs: what stands in another order of letters is put right.
constexpr std::string_view kKeyWords[] = {
    "ignore", "disregard", "forget",       "previous", "prior",     "instructions", "instruction", "system", "prompt",
    "reveal", "password",  "secret",       "token",    "assistant", "model",        "agent",       "delete", "execute",
    "follow", "rules",     "guidelines",   "user",     "tell",      "your",         "everything",  "above",  "override",
    "bypass", "print",     "credentials",  "message",  "files",     "command",      "orders",      "the",    "and",
    "you",    "everyone",  "conversation", "original", "output",    "repeat",       "this",        "send",   "without",
    "never",  "must",      "instead",      "now",      "what"};

// "prmopt": the same letters, and the first or the last at its place.
std::string_view unscrambled(std::string_view word) noexcept {
  if (word.size() < 3 || word.size() > 14) return {};
  for (const std::string_view key : kKeyWords) {
    if (key.size() != word.size() || (key.front() != word.front() && key.back() != word.back())) continue;
    std::array<int, 26> counts{};
    for (std::size_t i = 0; i < key.size(); ++i)
      ++counts[static_cast<std::size_t>(key[i] - 'a')], --counts[static_cast<std::size_t>(word[i] - 'a')];
    if (std::ranges::all_of(counts, [](int count) { return count == 0; })) return key;
  }
  return {};
}

// Which lengths and first and last letters the key words have: nearly every other word ends here.
struct KeyShapes {
  std::uint32_t first[16] = {}, last[16] = {};
  constexpr KeyShapes() {
    for (const std::string_view key : kKeyWords) {
      first[key.size()] |= 1U << static_cast<unsigned>(key.front() - 'a');
      last[key.size()] |= 1U << static_cast<unsigned>(key.back() - 'a');
    }
  }
  bool may_hold(std::string_view word) const noexcept {
    if (word.size() < 3 || word.size() > 14) return false;
    const auto bit = [](char c) { return 1U << static_cast<unsigned>(lower(c) - 'a'); };
    return (first[word.size()] & bit(word.front())) != 0 || (last[word.size()] & bit(word.back())) != 0;
  }
};
constexpr KeyShapes kShapes;

char unleet(char c) noexcept {
  constexpr std::string_view kFrom = "01345789@$", kTo = "oieastbgas";
  const std::size_t at = kFrom.find(c);
  return at == std::string_view::npos ? lower(c) : kTo[at];
}

bool in_word(char c) noexcept { return is_letter(c) || is_digit(c) || c == '@' || c == '$'; }

// Calls `visit` with each stretch of word letters and whether it is letters alone; the bytes between go to `between`.
template <typename Visit, typename Between>
void each_word(std::string_view text, Visit visit, Between between) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t begin = i;
    std::size_t letters = 0;
    for (; i < text.size() && in_word(text[i]); ++i) letters += is_letter(text[i]) ? 1U : 0U;
    if (i > begin) visit(text.substr(begin, i - begin), letters);
    else between(text[i++]);
  }
}

std::string lowered(std::string_view word) {
  std::string result(word);
  for (char& c : result) c = lower(c);
  return result;
}

// Of a line that has many words of letters and numbers mixed: two letters and more, or the paths of a drawing (`a.75.75`, `v11`)
// and names of versions (`13b`) would be opened. What the other lines have does not count.
void open_leet(std::string_view line, std::size_t begin, std::vector<Layer>& layers) {
  std::size_t mixed = 0, words = 0;
  each_word(
      line, [&](std::string_view word, std::size_t letters) { ++words, mixed += letters > 1 && letters < word.size() ? 1U : 0U; },
      [](char) {});
  if (mixed < 4 || mixed * 5 < words) return;
  std::string opened;
  each_word(
      line,
      [&](std::string_view word, std::size_t letters) {
        for (const char c : word) opened += letters > 0 || word.size() == 1 ? unleet(c) : c;
      },
      [&](char c) { opened += c; });
  layers.push_back({"leet", std::move(opened), static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(begin + line.size())});
}

void open_scrambled(std::string_view text, std::vector<Layer>& layers) {
  const auto key_of = [](std::string_view word, std::size_t letters) -> std::string_view {
    return letters == word.size() && kShapes.may_hold(word) ? unscrambled(lowered(word)) : std::string_view();
  };
  std::vector<std::string_view> turned;  // each once: one word that happens to have such letters can stand in every line
  each_word(
      text,
      [&](std::string_view word, std::size_t letters) {
        const std::string_view key = key_of(word, letters);
        if (!key.empty() && key != lowered(word) && std::ranges::find(turned, key) == turned.end()) turned.push_back(key);
      },
      [](char) {});
  if (turned.size() < 3) return;
  std::string opened;
  each_word(
      text,
      [&](std::string_view word, std::size_t letters) {
        const std::string_view key = key_of(word, letters);
        opened += key.empty() ? std::string_view(lowered(word)) : key;
      },
      [&](char c) { opened += c; });
  layers.push_back({"scrambled", std::move(opened), 0, static_cast<std::uint32_t>(text.size())});
}

// i-g-n-o-r-e a.l.l: single letters with the same mark between them, in an otherwise ordinary text.
bool is_lone(std::string_view text, std::size_t i) noexcept {
  return is_letter(text[i]) && (i == 0 || !is_letter(text[i - 1])) && (i + 1 >= text.size() || !is_letter(text[i + 1]));
}
// The last letter of a row that begins at `i`, or `i`.
std::size_t end_of_row(std::string_view text, std::size_t i) noexcept {
  if (i + 2 >= text.size() || !is_any(text[i + 1], " .-_*|/")) return i;
  std::size_t end = i;
  while (is_lone(text, end) && end + 2 < text.size() && text[end + 1] == text[i + 1] && is_lone(text, end + 2)) end += 2;
  return end;
}

// Of a line that has a row of four letters the shorter ones are put together as well.
void open_apart(std::string_view line, std::size_t begin, std::vector<Layer>& layers) {
  constexpr std::size_t kLong = 6;  // from the first letter to the fourth
  std::size_t longest = 0;
  for (std::size_t i = 0; i < line.size();) {
    const std::size_t end = end_of_row(line, i);
    longest = std::max(longest, end - i);
    i = end + 1;
  }
  if (longest < kLong) return;
  std::string joined;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const std::size_t end = end_of_row(line, i);
    for (; i < end; i += 2) joined += line[i];
    joined += line[i];
  }
  layers.push_back(
      {"apart", std::move(joined), static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(begin + line.size())});
}

// Some of the words by which a text in rot13 or from behind is known.
int hits(std::string_view text, std::span<const std::string_view> words) noexcept {
  return static_cast<int>(
      std::ranges::count_if(words, [&](std::string_view word) { return text.find(word) != std::string_view::npos; }));
}

// Each word from behind, in its place.
std::string turned_words(std::string_view text) {
  std::string turned(text);
  for (std::size_t i = 0; i < turned.size();) {
    const std::size_t begin = i;
    while (i < turned.size() && turned[i] != ' ' && turned[i] != '\n') ++i;
    std::reverse(turned.begin() + static_cast<std::ptrdiff_t>(begin), turned.begin() + static_cast<std::ptrdiff_t>(i));
    ++i;
  }
  return turned;
}

// The whole is turned: what was plain before is not afterwards, and says nothing.
void open_turned(std::string_view text, std::vector<Layer>& layers) {
  constexpr std::string_view kRotated[] = {"tabe",   "afgehpg",   "cebzcg", " gur ", " naq ",    " nyy ", " lbh",
                                           "flfgrz", "nffvfgnag", "hfre",   "zbqry", "cnffjbeq", "qryrgr"};
  constexpr std::string_view kReversed[] = {"erong",  "tcurtsn",   "tpmor", " eht ",  " dna ",    " lla ", "uoy",
                                            "metsys", "tnatsissa", "resu ", "ledom ", "drowssap", "eteled"};
  const auto whole = static_cast<std::uint32_t>(text.size());
  if (hits(text, kRotated) >= 2) {
    std::string turned(text);
    for (char& c : turned) {
      if (is_letter(c)) c = static_cast<char>((is_lower(c) ? 'a' : 'A') + (c - (is_lower(c) ? 'a' : 'A') + 13) % 26);
    }
    layers.push_back({"rot13", std::move(turned), 0, whole});
  }
  if (hits(text, kReversed) < 2) return;
  layers.push_back({"reversed", std::string(text.rbegin(), text.rend()), 0, whole});
  layers.push_back({"reversed words", turned_words(text), 0, whole});
}

}  // namespace

std::vector<Layer> open_spellings(std::string_view text) {
  std::vector<Layer> layers;
  if (text.size() > (8U << 10)) return layers;
  constexpr std::size_t kPasses = 40;  // with those for the single words of rot13 and of a text from behind
  count_steps(kPasses * text.size());
  open_numbers(text, layers);
  open_morse(text, layers);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    open_leet(text.substr(at, end - at), at, layers);
    open_apart(text.substr(at, end - at), at, layers);
    at = end + 1;
  }
  open_scrambled(text, layers);
  open_turned(text, layers);
  return layers;
}

}  // namespace belljar::detect
