// Text as a model may read it, against text as it is spelled: confusable letters, invisible code points and colour codes taken
// away, hidden layers (base64, hexadecimal, percent, HTML entities, rot13) opened. Every result remembers where it came from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace belljar::detect {

// Lower-case text; `at[i]` is the byte of the original that character i came from.
struct Plain {
  std::string text;
  std::vector<std::uint32_t> at;
};

// What was found on the way, in bytes of the original.
struct Hidden {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t tags = 0;        // letters spelled in tag characters, U+E0020..E007E
  std::uint32_t invisible = 0;   // zero-width and variation selectors in runs of eight and more, or inside words
  std::uint32_t bidi = 0;        // overrides and isolates
  std::uint32_t confusable = 0;  // letters of another script inside a Latin word
  std::uint32_t escapes = 0;     // terminal escapes that conceal
};

// Folds what looks like ASCII to ASCII (fullwidth, mathematical, small capitals, accents; Cyrillic and Greek inside Latin words),
// drops what is invisible, decodes tag characters, makes one space of blanks but keeps line ends. Bytes that are not UTF-8 become
// spaces.
Plain normalise(std::string_view text, Hidden& hidden);

// The code point at `at`, which moves behind it; a blank for a byte that is not UTF-8.
std::uint32_t next_code(std::string_view text, std::size_t& at) noexcept;

// A layer that was encoded inside the text.
struct Layer {
  std::string how;  // "base64"
  std::string text;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};
// At most 64 layers and 256 KiB of decoded text; each must read like text.
std::vector<Layer> decode_layers(std::string_view text);

// What is spelled otherwise than letter by letter (spellings.cc): numbers, morse, l33t, letters out of order, words pulled apart,
// rot13, from behind.
std::vector<Layer> open_spellings(std::string_view text);

}  // namespace belljar::detect
