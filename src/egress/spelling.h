// A text as others write it: each of its letters as it is, or escaped as URLs (%26), JSON and program text (\u0026, \x26, \&) and
// HTML (&amp; &#38; &#x26;) do. Who escapes chooses letter by letter, so that whole spellings could not be counted. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace belljar::egress {

inline constexpr std::size_t kLongestLetter = 10;  // bytes of one that is escaped: &#0000038;

enum class Fit { kNo, kMore, kWhole };

struct SpellingMatch {
  Fit fit = Fit::kNo;
  std::size_t size = 0;  // of `text`, when it is kWhole
};

// Whether `text` begins with `value` in some spelling. kMore: it ends before that is known. The time grows with the two lengths,
// and with their product only for values made of the very characters that begin an escape.
SpellingMatch fit_spelling(std::string_view value, std::string_view text);

// How much of `text` is the whole `value` in some spelling; 0: it does not begin with it. Unlike fit_spelling() this does not stop
// at the first letter that differs, and so its time does not tell how many of a secret's letters somebody has guessed: it looks on
// in steps of 64 letters. Not so for a value with `%`, `\` or `&` in it, of which a text can be read in several ways.
std::size_t match_spelling(std::string_view value, std::string_view text);

// The bytes that any spelling may hold of a value made of the same kind of letters: those of tokens, those of passwords without
// quotes, brackets and spaces, all that can be printed, or all. It tells no more of the value than that kind.
std::array<bool, 256> bytes_of_spellings(std::string_view value);

// Whether `text`, which is not empty, may begin with a spelling of one of these letters: a quick look before the others.
bool may_begin(std::string_view text, const std::array<bool, 256>& letters);

}  // namespace belljar::egress
