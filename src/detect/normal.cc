// Text as a reader would see it: folded, without what is invisible, each character with its place in the
// original.
//
// The rows of the detector are written once, in lower-case ASCII and the plain letters of other scripts. So
// everything that only looks different is folded to that: letters of mathematical alphabets, full-width
// forms, accents, typographic quotes. Cyrillic and Greek letters that look Latin are folded only inside words
// that have Latin letters as well, because Russian and Greek are languages and not disguises.
//
// What is taken away is counted (Hidden): invisible characters in a run or inside a word, direction controls,
// tag characters, terminal sequences that conceal. Ordinary text has a few of these, a soft hyphen or an
// emoji flag, which are left out of the count.
//
// Most bytes are plain ASCII. plain_run() copies them by a table of 256 entries, and only the others take the
// long way.
#include "detect/normal.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "detect/ascii.h"
#include "detect/work.h"

namespace belljar::detect {
namespace {

struct Fold {
  std::uint32_t first, last;
  char base;  // the ASCII letter of `first`
};
// Runs of 26 letters, and full-width ASCII.
constexpr Fold kRuns[] = {{0xFF21, 0xFF3A, 'a'},   {0xFF41, 0xFF5A, 'a'},   {0x1D400, 0x1D419, 'a'}, {0x1D41A, 0x1D433, 'a'},
                          {0x1D434, 0x1D44D, 'a'}, {0x1D44E, 0x1D467, 'a'}, {0x1D468, 0x1D481, 'a'}, {0x1D482, 0x1D49B, 'a'},
                          {0x1D4D0, 0x1D4E9, 'a'}, {0x1D4EA, 0x1D503, 'a'}, {0x1D56C, 0x1D585, 'a'}, {0x1D586, 0x1D59F, 'a'},
                          {0x1D5A0, 0x1D5B9, 'a'}, {0x1D5BA, 0x1D5D3, 'a'}, {0x1D5D4, 0x1D5ED, 'a'}, {0x1D5EE, 0x1D607, 'a'},
                          {0x1D608, 0x1D621, 'a'}, {0x1D622, 0x1D63B, 'a'}, {0x1D63C, 0x1D655, 'a'}, {0x1D656, 0x1D66F, 'a'},
                          {0x1D670, 0x1D689, 'a'}, {0x1D68A, 0x1D6A3, 'a'}, {0x24B6, 0x24CF, 'a'},   {0x24D0, 0x24E9, 'a'},
                          {0x1F130, 0x1F149, 'a'}, {0x1F170, 0x1F189, 'a'}, {0x1F150, 0x1F169, 'a'}, {0x1F1E6, 0x1F1FF, 'a'},
                          {0x249C, 0x24B5, 'a'},   {0x1D49C, 0x1D4B5, 'a'}, {0x1D4B6, 0x1D4CF, 'a'}, {0x1D504, 0x1D51D, 'a'},
                          {0x1D51E, 0x1D537, 'a'}, {0x1D538, 0x1D551, 'a'}, {0x1D552, 0x1D56B, 'a'}, {0xFF10, 0xFF19, '0'}};

struct Pair {
  std::uint32_t code;
  char letter;
};
// Cyrillic and Greek letters that look Latin; only inside words that have Latin letters too.
constexpr Pair kLookalikes[] = {
    {0x430, 'a'},  {0x435, 'e'},  {0x43E, 'o'},  {0x440, 'p'},  {0x441, 'c'},  {0x443, 'y'},  {0x445, 'x'},  {0x456, 'i'},
    {0x458, 'j'},  {0x455, 's'},  {0x501, 'd'},  {0x51B, 'q'},  {0x410, 'a'},  {0x412, 'b'},  {0x415, 'e'},  {0x41A, 'k'},
    {0x41C, 'm'},  {0x41D, 'h'},  {0x41E, 'o'},  {0x420, 'p'},  {0x421, 'c'},  {0x422, 't'},  {0x425, 'x'},  {0x406, 'i'},
    {0x4BB, 'h'},  {0x4CF, 'l'},  {0x391, 'a'},  {0x392, 'b'},  {0x395, 'e'},  {0x399, 'i'},  {0x39A, 'k'},  {0x39C, 'm'},
    {0x39D, 'n'},  {0x39F, 'o'},  {0x3A1, 'p'},  {0x3A4, 't'},  {0x3B1, 'a'},  {0x3B5, 'e'},  {0x3B9, 'i'},  {0x3BA, 'k'},
    {0x3BD, 'v'},  {0x3BF, 'o'},  {0x3C1, 'p'},  {0x3C5, 'u'},  {0x3F2, 'c'},  {0x261, 'g'},  {0x131, 'i'},  {0x26A, 'i'},
    {0x274, 'n'},  {0x280, 'r'},  {0x1D00, 'a'}, {0x1D04, 'c'}, {0x1D05, 'd'}, {0x1D07, 'e'}, {0x1D0F, 'o'}, {0x1D18, 'p'},
    {0x1D1B, 't'}, {0x1D1C, 'u'}, {0x1D20, 'v'}};
// U+00C0..U+017F without their accents.
constexpr std::string_view kLatin =
    "aaaaaaaceeeeiiiidnooooo*ouuuuytsaaaaaaaceeeeiiiidnooooo*"
    "ouuuuytyaaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiiiiijjkkklllllllllln"
    "nnnnnnnnoooooooorrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzzs";

bool is_invisible(std::uint32_t code) noexcept {
  return code == 0xAD || code == 0x34F || code == 0x61C || code == 0x115F || code == 0x1160 || code == 0x17B4 || code == 0x17B5 ||
         code == 0x180E || (code >= 0x200B && code <= 0x200F) || (code >= 0x2060 && code <= 0x2064) || code == 0xFEFF ||
         (code >= 0xFE00 && code <= 0xFE0F) || (code >= 0xE0100 && code <= 0xE01EF);
}
bool is_bidi(std::uint32_t code) noexcept { return (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069); }

char folded(std::uint32_t code) noexcept {
  if (code >= 0xC0 && code < 0xC0 + kLatin.size()) return kLatin[code - 0xC0];
  const bool may_run = code >= 0x249C && (code < 0x2500 || code >= 0xFF00);  // neither Chinese nor Arabic: most of such a text
  for (const Fold& run : may_run ? std::span<const Fold>(kRuns) : std::span<const Fold>()) {
    if (code >= run.first && code <= run.last) return static_cast<char>(run.base + static_cast<char>(code - run.first));
  }
  if (code >= 0x218 && code <= 0x21B) return code < 0x21A ? 's' : 't';
  if (code == 0xA0 || code == 0x3000 || (code >= 0x2000 && code <= 0x200A) || code == 0x202F) return ' ';
  if (code == 0x2018 || code == 0x2019) return '\'';
  if (code == 0xAB || code == 0xBB || (code >= 0x201C && code <= 0x201F) || (code >= 0x300A && code <= 0x300F)) return '"';
  if (code >= 0xFF01 && code <= 0xFF20) return static_cast<char>(code - 0xFF00 + 0x20);
  if (code == 0x3010 || code == 0x3011) return code == 0x3010 ? '[' : ']';
  if (code == 0x3001 || code == 0x60C || code == 0x61B) return ',';  // and Arabic ones
  if (code == 0x61F) return '?';
  if (code == 0x3002 || code == 0x2026 || code == 0x964) return '.';  // and the danda of Hindi
  if (code == 0x2013 || code == 0x2014) return '-';
  return code == 0xA1 || code == 0xBF ? ' ' : '\0';
}

// One spelling of a letter: lower case of Cyrillic, Greek and Vietnamese ones, Greek ones without their accents.
std::uint32_t lower_code(std::uint32_t code) noexcept {
  if (code == 0x401 || code == 0x451) return 0x435;
  if (code >= 0x400 && code <= 0x42F) return code + (code < 0x410 ? 0x50 : 0x20);
  if ((code >= 0x1EA0 && code <= 0x1EF9) || code == 0x1A0) return code | 1U;
  if (code == 0x1AF) return 0x1B0;
  if (code < 0x386 || code > 0x3CE) return code;
  if (code >= 0x391 && code <= 0x3A9) return code + 0x20;
  switch (code) {
    case 0x386:
    case 0x3AC:
      return 0x3B1;
    case 0x388:
    case 0x3AD:
      return 0x3B5;
    case 0x389:
    case 0x3AE:
      return 0x3B7;
    case 0x38A:
    case 0x3AF:
      return 0x3B9;
    case 0x38C:
    case 0x3CC:
      return 0x3BF;
    case 0x38E:
    case 0x3CD:
      return 0x3C5;
    case 0x38F:
    case 0x3CE:
      return 0x3C9;
    default:
      return code == 0x3C2 ? 0x3C3 : code;  // the sigma at the end of a word
  }
}

// By place: every letter of a Russian or Greek text is looked for.
struct LookalikeTable {
  static constexpr std::uint32_t kFirst = 0x131, kLast = 0x1D20;
  char letters[kLast - kFirst + 1];
  constexpr LookalikeTable() : letters{} {
    for (const Pair& pair : kLookalikes) letters[pair.code - kFirst] = pair.letter;
  }
};
constexpr LookalikeTable kLookalikeTable;

char lookalike(std::uint32_t code) noexcept {
  return code < LookalikeTable::kFirst || code > LookalikeTable::kLast ? '\0'
                                                                       : kLookalikeTable.letters[code - LookalikeTable::kFirst];
}

// Printable ASCII and line ends as they come out; '\0' for all that needs a look.
struct PlainTable {
  char folded[256];
  constexpr PlainTable() : folded{} {
    for (int c = 0x20; c < 0x7F; ++c) folded[c] = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    folded['\n'] = '\n';
  }
};
constexpr PlainTable kPlain;

class Normaliser {
 public:
  Normaliser(std::string_view text, Hidden& hidden) : text_(text), hidden_(hidden) {
    plain_.text.resize(text.size());  // never longer than the original; cut at the end
    plain_.at.resize(text.size());
  }

  Plain run() {
    count_steps(text_.size());
    std::size_t at = 0;
    while ((at = plain_run(at)) < text_.size()) {
      const std::size_t begin = at;
      const auto c = static_cast<unsigned char>(text_[at]);
      if (c < 0x80 && c != 0x1B) {
        ++at;
        run_ = 0;
        ascii(static_cast<char>(c), begin);
      } else if (c == 0x1B) {
        at = skip_escape(at);
      } else {
        const std::uint32_t code = next_code(text_, at);  // first: it moves `at`
        const bool opens = code == 0xAB && (size_ == 0 || last() == ' ' || last() == '\n' || last() == '(');
        other(code, begin, at);
        for (const std::string_view blank : {" ", "\u00A0", "\u202F"})
          if (opens && text_.substr(at).starts_with(blank)) at += blank.size();
      }
    }
    plain_.text.resize(size_);
    plain_.at.resize(size_);
    return std::move(plain_);
  }

 private:
  // What most text is made of, with nothing to decide: as far as that goes.
  std::size_t plain_run(std::size_t at) noexcept {
    const char* const from = text_.data();
    char* const to = plain_.text.data();
    std::uint32_t* const places = plain_.at.data();
    std::size_t size = size_;
    for (const std::size_t end = text_.size(); at < end; ++at) {
      const char c = kPlain.folded[static_cast<unsigned char>(from[at])];
      if (c == '\0') break;
      if (c == ' ' && (size == 0 || to[size - 1] == ' ' || to[size - 1] == '\n')) break;
      to[size] = c;
      places[size++] = static_cast<std::uint32_t>(at);
    }
    if (size != size_) run_ = 0;
    size_ = size;
    return at;
  }
  void put(char c, std::size_t begin) noexcept {
    plain_.text[size_] = c;
    plain_.at[size_++] = static_cast<std::uint32_t>(begin);
  }
  char last() const noexcept { return size_ == 0 ? '\0' : plain_.text[size_ - 1]; }
  void ascii(char c, std::size_t begin) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    const bool blank = c == ' ' || c == '\t' || c == '\r';
    if (blank && (last() == ' ' || last() == '\n')) return;
    put(blank ? ' ' : c, begin);
  }
  void mark(std::size_t begin, std::size_t end) {
    if (hidden_.end == 0) hidden_.begin = static_cast<std::uint32_t>(begin);
    hidden_.end = static_cast<std::uint32_t>(end);
  }
  // CSI sequences; SGR 8 conceals.
  std::size_t skip_escape(std::size_t at) {
    std::size_t end = at + 1;
    if (end < text_.size() && text_[end] == '[') {
      ++end;
      while (end < text_.size() && (text_[end] < '@' || text_[end] > '~')) ++end;
      const std::string_view codes = text_.substr(at, std::min<std::size_t>(end - at, 32));
      if (end < text_.size() && text_[end] == 'm' && (codes.ends_with("[8") || codes.ends_with(";8")))
        ++hidden_.escapes, mark(at, end);
    } else if (end < text_.size() && text_[end] == ']') {  // the title of a window: a line of its own
      const std::size_t start = text_.substr(end, 5).find(';');
      if (start != std::string_view::npos) {
        put('\n', at);
        return end + start + 1;
      }
    }
    return std::min(end + 1, text_.size());
  }
  // The flags of England, Scotland and Wales: a black flag, then letters in tag characters (UTS 51, RGI_Emoji_Tag_Sequence).
  bool in_flag(std::size_t tag) const noexcept {
    constexpr std::string_view kBlackFlag = "\U0001F3F4",
                               kFlags[] = {"\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F",
                                           "\U000E0067\U000E0062\U000E0073\U000E0063\U000E0074\U000E007F",
                                           "\U000E0067\U000E0062\U000E0077\U000E006C\U000E0073\U000E007F"};
    constexpr std::size_t kTag = 4;  // bytes
    for (std::size_t before = 0; before < 5 && tag >= before * kTag + kBlackFlag.size(); ++before) {
      const std::size_t start = tag - before * kTag;
      if (text_.substr(start - kBlackFlag.size(), kBlackFlag.size()) != kBlackFlag) continue;
      return std::ranges::any_of(kFlags, [&](std::string_view flag) { return text_.substr(start).starts_with(flag); });
    }
    return false;
  }
  void other(std::uint32_t code, std::size_t begin, std::size_t end) {
    if (code >= 0xE0020 && code <= 0xE007E) {
      if (in_flag(begin)) return;
      ++hidden_.tags;
      mark(begin, end);
      return ascii(static_cast<char>(code - 0xE0000), begin);
    }
    if (code == ' ') return run_ = 0, ascii(' ', begin);  // no UTF-8
    if (is_invisible(code)) {
      // A soft hyphen has its place in words.
      const bool in_word = code != 0xAD && is_letter(last()) && end < text_.size() && is_letter(text_[end]);
      if (++run_ == 8) hidden_.invisible += 8, mark(begin, end);
      else if (in_word || run_ > 8) ++hidden_.invisible, mark(begin, end);
      return;
    }
    run_ = 0;
    if (is_bidi(code)) {
      ++hidden_.bidi;
      return mark(begin, end);
    }
    // The blanks inside of French quotation marks are no part of what is quoted; in German these marks stand the other way round.
    const bool ends_word = end >= text_.size() || (!is_letter(text_[end]) && static_cast<unsigned char>(text_[end]) < 0x80);
    if (code == 0xBB && last() == ' ' && ends_word) --size_;
    if (const char c = folded(code); c != 0) return ascii(c, begin);
    if (const char c = lookalike(code); c != 0 && in_latin_word(begin, end)) {
      ++hidden_.confusable;
      mark(begin, end);
      return put(c, begin);
    }
    if (code >= 0x300 && code <= 0x36F) return;  // an accent of its own
    if (const std::uint32_t lower = lower_code(code); lower != code) return put_code(lower, begin);
    for (std::size_t i = begin; i < end; ++i) put(text_[i], begin);
  }
  // Of two or three bytes.
  void put_code(std::uint32_t code, std::size_t begin) noexcept {
    if (code >= 0x800) put(static_cast<char>(0xE0U | (code >> 12U)), begin);
    put(static_cast<char>(code >= 0x800 ? 0x80U | ((code >> 6U) & 0x3FU) : 0xC0U | (code >> 6U)), begin);
    put(static_cast<char>(0x80U | (code & 0x3FU)), begin);
  }
  bool in_latin_word(std::size_t begin, std::size_t end) const noexcept {
    count_steps(24);
    for (std::size_t i = begin, n = 0; i > 0 && n < 12; ++n) {
      const char c = text_[--i];
      if (is_letter(c)) return true;
      if (static_cast<unsigned char>(c) < 0x80) break;
    }
    for (std::size_t i = end, n = 0; i < text_.size() && n < 12; ++n, ++i) {
      if (is_letter(text_[i])) return true;
      if (static_cast<unsigned char>(text_[i]) < 0x80) break;
    }
    return false;
  }

  std::string_view text_;
  Hidden& hidden_;
  Plain plain_;
  std::size_t size_ = 0;
  std::uint32_t run_ = 0;
};

}  // namespace

std::uint32_t next_code(std::string_view text, std::size_t& at) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned c = byte(at);
  if (c < 0x80) return ++at, c;
  const std::size_t length = c >= 0xC2 && c < 0xE0 ? 2 : c >= 0xE0 && c < 0xF0 ? 3 : c >= 0xF0 && c < 0xF5 ? 4 : 0;
  if (length == 0 || at + length > text.size()) return ++at, ' ';
  std::uint32_t code = c & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0U) != 0x80) return ++at, ' ';
    code = (code << 6U) | (byte(at + i) & 0x3FU);
  }
  at += length;
  return code;
}

Plain normalise(std::string_view text, Hidden& hidden) { return Normaliser(text, hidden).run(); }

}  // namespace belljar::detect
