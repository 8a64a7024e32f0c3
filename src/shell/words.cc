// Quote removal, bash(1) QUOTING: the text that the program gets, as far as it is known before the run.
//
// A word is built piece by piece, each piece by the rule of its quotes. What only the run decides (an
// expansion, a pattern that finds files) is left out of the text and noted in the word instead: that it is
// not `fixed`, whether it may become several words, and how many bytes at the front are certain (`lead`).
// Checks use the certain front, so `"/etc/$x"` is still a path that begins with /etc. That no `..` can follow
// is what `bounded` says.
#include "shell/words.h"

#include <algorithm>
#include <cstdint>

#include "base/encoding.h"

namespace belljar::shell {
namespace {

bool is_octal(char c) noexcept { return c >= '0' && c <= '7'; }

// The number of at most `most` digits at `at`, base 8 or 16; moves `at` behind it.
std::uint32_t number_at(std::string_view raw, std::size_t& at, int most, std::uint32_t base) noexcept {
  std::uint32_t value = 0;
  for (; most > 0 && at < raw.size(); --most, ++at) {
    const int digit = hex_digit(raw[at]);
    if (digit < 0 || static_cast<std::uint32_t>(digit) >= base) break;
    value = value * base + static_cast<std::uint32_t>(digit);
  }
  return value;
}

// One escape behind its backslash; `at` stands on the letter and is moved behind the escape.
void add_escape(Word& word, std::string_view raw, std::size_t& at) {
  static constexpr std::string_view kLetters = "abeEfnrtv\\'\"?";
  static constexpr std::string_view kValues = "\a\b\x1B\x1B\f\n\r\t\v\\'\"?";
  const char c = raw[at];
  if (const std::size_t found = kLetters.find(c); found != std::string_view::npos) {
    word.text += kValues[found];
    ++at;
  } else if (is_octal(c)) {
    word.text += static_cast<char>(number_at(raw, at, 3, 8));
  } else if (c == 'x') {
    word.text += static_cast<char>(number_at(raw, ++at, 2, 16));
  } else if (c == 'u' || c == 'U') {
    append_utf8(word.text, number_at(raw, ++at, c == 'u' ? 4 : 8, 16) & 0x1FFFFFU);
  } else if (c == 'c' && at + 1 < raw.size()) {
    word.text += static_cast<char>(raw[at + 1] & 0x1F);
    at += 2;
  } else {
    word.text += '\\';
  }
}

}  // namespace

void add_dynamic(Word& word, bool quoted) noexcept {
  if (word.text.empty()) word.opens = true;
  word.lead = std::min(word.lead, word.text.size());
  word.bounded = word.fixed = false;
  word.expands = true;
  if (!quoted) word.splits = true;
}

void add_bare(Word& word, std::string_view raw) {
  if (word.text.empty() && raw.starts_with('~')) word.fixed = false;  // a home: known only to the shell, one word for sure
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const char c = raw[i];
    if (c == '\\') {
      if (i + 1 == raw.size()) break;
      if (raw[++i] != '\n') word.text += raw[i];
      continue;
    }
    if (std::string_view("*?[").find(c) != std::string_view::npos) {
      word.pattern = word.splits = true;  // names of files: words that begin like the pattern does
      word.fixed = false;
    }
    if (c == '$' || c == '`' || c == '"' || c == '\'') {
      const bool pid = raw.substr(i).starts_with("$$"), bounded = word.bounded;
      add_dynamic(word, false);
      if (pid) word.text += raw[i++], word.bounded = bounded;
    }
    word.text += c;
  }
}

void add_double_quoted(Word& word, std::string_view raw) {
  for (std::size_t i = 0; i < raw.size(); ++i) {
    char c = raw[i];
    if (c == '\\' && i + 1 < raw.size()) {
      const char next = raw[i + 1];
      if (next == '\n') {
        ++i;
        continue;
      }
      if (std::string_view("$`\"\\").find(next) != std::string_view::npos) {
        word.text += next;
        ++i;
        continue;
      }
    } else if (c == '`' || (c == '$' && i + 1 < raw.size() && raw[i + 1] != ' ')) {
      add_dynamic(word, true);
    }
    word.text += c;
  }
}

void add_ansi_c(Word& word, std::string_view raw) {
  for (std::size_t i = 0; i < raw.size();) {
    if (raw[i] == '\\' && i + 1 < raw.size()) {
      ++i;
      add_escape(word, raw, i);
    } else {
      word.text += raw[i++];
    }
  }
  // bash ends the word at a NUL.
  if (const std::size_t nul = word.text.find('\0'); nul != std::string::npos) add_dynamic(word, true);
}

}  // namespace belljar::shell
