// A value as others spell it, letter by letter: itself, or an escape of URLs, JSON or HTML.
//
// Two matchers. match_blindly() reads the text's letters and only then compares them, in steps of 64, so that
// its time does not tell how many letters were right. It needs a text that can be read in one way alone. If
// the value itself holds a character that begins an escape (`%`, `\` or `&`), a text can be read in several
// ways: fit_spelling() follows each of them once.
#include "egress/spelling.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/encoding.h"

namespace belljar::egress {
namespace {

// An escape at the beginning of a text: how long it is and what it stands for. No size: there is none.
struct Escape {
  std::size_t size = 0;
  std::string letter;
  bool more = false;  // the text ends inside of it, perhaps
};

std::optional<std::uint32_t> number_of(std::string_view digits, std::uint32_t base) {
  if (digits.empty()) return std::nullopt;
  std::uint32_t number = 0;
  for (const char c : digits) {
    const auto digit = static_cast<std::uint32_t>(hex_digit(c));
    if (digit >= base) return std::nullopt;
    number = number * base + digit;
  }
  return number;
}

std::string utf8(std::uint32_t letter) {
  std::string bytes;
  append_utf8(bytes, letter);
  return bytes;
}

// `before` characters, then `count` hex digits: one byte, or with more than two digits one letter.
Escape read_hex(std::string_view text, std::size_t before, std::size_t count) {
  const std::string_view digits = text.substr(before, count);
  const auto number = number_of(digits, 16);
  if (digits.size() < count) return {.more = digits.empty() || number.has_value()};
  if (!number) return {};
  return {.size = before + count, .letter = count == 2 ? std::string(1, static_cast<char>(*number)) : utf8(*number)};
}

Escape read_backslash(std::string_view text) {
  if (text.size() == 1) return {.more = true};
  const char c = text[1];
  if (c == 'u') return read_hex(text, 2, 4);
  if (c == 'x') return read_hex(text, 2, 2);
  const bool mark = c > ' ' && c < 0x7F && !(c >= '0' && c <= '9') && !(c >= 'A' && c <= 'Z') && !(c >= 'a' && c <= 'z');
  return mark ? Escape{.size = 2, .letter = {c}} : Escape{};
}

std::optional<std::uint32_t> read_number(std::string_view name) {
  const bool hex = name.starts_with("#x") || name.starts_with("#X");
  return number_of(name.substr(hex ? 2 : 1), hex ? 16 : 10);
}

Escape read_entity(std::string_view text) {
  constexpr std::pair<std::string_view, char> kNamed[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
  const std::size_t end = text.substr(0, kLongestLetter).find(';');
  const std::string_view name = text.substr(1, end - 1);
  if (end == std::string_view::npos) {  // an event stream is not held up by any other word
    const bool begun = name.empty() || name == "#" || name == "#x" || name == "#X" || (name[0] == '#' && read_number(name)) ||
                       std::ranges::any_of(kNamed, [name](const auto& named) { return named.first.starts_with(name); });
    return {.more = begun && text.size() < kLongestLetter};
  }
  const auto* const named = std::ranges::find(kNamed, name, &std::pair<std::string_view, char>::first);
  if (named != std::end(kNamed)) return {.size = end + 1, .letter = {named->second}};
  const auto number = name.starts_with('#') ? read_number(name) : std::nullopt;
  return number ? Escape{.size = end + 1, .letter = utf8(*number)} : Escape{};
}

Escape read_escape(std::string_view text) {
  if (text.empty()) return {.more = true};
  if (text[0] == '%') return read_hex(text, 1, 2);
  if (text[0] == '\\') return read_backslash(text);
  return text[0] == '&' ? read_entity(text) : Escape{};
}

bool begins_escape(char c) noexcept { return c == '%' || c == '\\' || c == '&'; }

bool is_itself(char c, char letter) noexcept { return c == letter || (c == '+' && letter == ' '); }  // as forms write it

// Letter by letter as the text says, whatever the value says: see match_spelling().
std::size_t match_blindly(std::string_view value, std::string_view text) {
  constexpr std::size_t kStep = 64;  // nobody guesses so many letters at once
  unsigned differs = 0;
  std::size_t have = 0, at = 0, look = kStep;
  while (have < value.size()) {
    if (at >= text.size()) return 0;
    const Escape escape = begins_escape(text[at]) ? read_escape(text.substr(at)) : Escape{};
    const bool escaped = escape.size != 0;
    const std::string_view letter = escaped ? std::string_view(escape.letter) : text.substr(at, 1);
    if (letter.size() > value.size() - have) return 0;
    for (const char c : letter) {
      const char wanted = value[have++];
      differs |= static_cast<unsigned>(!(escaped ? c == wanted : is_itself(c, wanted)));
    }
    at += escaped ? escape.size : 1;
    if (have < look) continue;
    if (differs != 0) return 0;
    look += kStep;
  }
  return differs == 0 ? at : 0;
}

}  // namespace

std::size_t match_spelling(std::string_view value, std::string_view text) {
  if (std::ranges::none_of(value, begins_escape)) return match_blindly(value, text);
  const SpellingMatch found = fit_spelling(value, text);
  return found.fit == Fit::kWhole ? found.size : 0;
}

std::array<bool, 256> bytes_of_spellings(std::string_view value) {
  const auto is_token = [](char c) { return is_alnum(c) || std::string_view("-._~+/=").find(c) != std::string_view::npos; };
  const auto prints = [](char c) { return static_cast<unsigned char>(c) >= ' ' && c != 0x7F; };
  const auto is_mark = [&](char c) {
    return prints(c) && static_cast<unsigned char>(c) < 0x7F && std::string_view(" \"'`<>()[]{}").find(c) == std::string_view::npos;
  };
  const bool token = std::ranges::all_of(value, is_token), mark = std::ranges::all_of(value, is_mark),
             printed = std::ranges::all_of(value, prints);
  std::array<bool, 256> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char c = static_cast<char>(i);
    const bool of_escapes = begins_escape(c) || c == ';' || c == '#';
    bytes[i] = of_escapes || (token ? is_token(c) : mark ? is_mark(c) : !printed || prints(c));
  }
  return bytes;
}

bool may_begin(std::string_view text, const std::array<bool, 256>& letters) {
  const auto wanted = [&letters](char c) { return letters[static_cast<unsigned char>(c)]; };
  if (wanted(text[0]) || (text[0] == '+' && wanted(' '))) return true;
  if (!begins_escape(text[0])) return false;
  const Escape escape = read_escape(text);
  return escape.more || (escape.size != 0 && wanted(escape.letter[0]));
}

SpellingMatch fit_spelling(std::string_view value, std::string_view text) {
  using State = std::pair<std::size_t, std::size_t>;  // how far in the value, how far in the text
  State now{0, 0};
  std::vector<State> others;  // where a letter can be read as itself and as the beginning of its own escape
  std::set<State> forks;      // those were seen: each is followed once
  bool more = false;
  for (;;) {
    const auto [have, at] = now;
    if (have == value.size()) return {Fit::kWhole, at};
    const bool itself = at < text.size() && is_itself(text[at], value[have]);
    const bool plain = itself && !begins_escape(value[have]);
    const Escape escape = plain ? Escape{} : read_escape(text.substr(at));
    more = more || escape.more;
    const bool escaped = escape.size != 0 && value.substr(have).starts_with(escape.letter);
    const bool fork = itself && escaped, known = fork && !forks.insert(now).second;
    const State after{have + escape.letter.size(), at + escape.size};
    if (fork && !known) others.push_back(after);
    if (itself && !known) now = {have + 1, at + 1};
    else if (escaped && !known) now = after;
    else if (others.empty()) return {more ? Fit::kMore : Fit::kNo, 0};
    else now = others.back(), others.pop_back();
  }
}

}  // namespace belljar::egress
