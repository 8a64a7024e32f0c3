// A text as others write it: each of its letters as it is, or escaped as URLs (%26), JSON and program text (\u0026, \x26, \&) and
// HTML (&amp; &#38; &#x26;) do. Who escapes chooses letter by letter, so that whole spellings could not be counted. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace belljar::egress {

enum class Fit { kNo, kMore, kWhole };

struct Fitting {
  Fit fit = Fit::kNo;
  std::size_t size = 0;  // of `text`, when it is kWhole
};

// Whether `text` begins with `value` in some spelling. kMore: it ends before that is known. The time grows with the two lengths,
// and with their product only for values made of the very characters that begin an escape.
Fitting fit_spelling(std::string_view value, std::string_view text);

// Whether `text`, which is not empty, may begin with a spelling of one of these letters: a quick look before the others.
bool may_begin(std::string_view text, const std::array<bool, 256>& letters);

}  // namespace belljar::egress
