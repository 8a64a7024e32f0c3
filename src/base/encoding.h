// Bytes as text, for wires and files that carry nothing else, and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ascii.h"
#include "base/encoding.h"

namespace belljar {

enum class Digits { kSmall, kCapital };  // of sixteen: 0-9a-f, 0-9A-F

// What the digit stands for; -1: it is none.
constexpr int hex_digit(char c) noexcept {
  const char small = to_lower(c);
  return is_digit(c) ? c - '0' : small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}
// The byte that the two digits at the front of `text` spell; -1: they spell none.
constexpr int hex_byte(std::string_view text) noexcept {
  const int high = text.size() < 2 ? -1 : hex_digit(text[0]), low = text.size() < 2 ? -1 : hex_digit(text[1]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}
// Whether there is nothing in it but small digits.
constexpr bool is_small_hex(std::string_view text) noexcept {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}
std::string to_hex(std::string_view bytes, Digits digits = Digits::kSmall);
// nullopt: it is none.
std::optional<std::string> from_hex(std::string_view text);

// RFC 4648, section 4, with padding.
std::string to_base64(std::string_view bytes);
// The same with `-` and `_`, section 5.
std::string to_base64url(std::string_view bytes);
// What the letter of section 4 stands for; -1: it is none.
int base64_digit(char c) noexcept;
// nullopt: it is none, or not padded.
std::optional<std::string> from_base64(std::string_view text);

// RFC 3986: all but its unreserved characters, and those of `kept`, as %XX.
std::string percent_encoded(std::string_view text, std::string_view kept = {}, Digits digits = Digits::kCapital);
// nullopt: a percent sign in it begins no byte.
std::optional<std::string> percent_decoded(std::string_view text);

// Bytes of the well-formed sequence at the front: RFC 3629 section 4, so no longer form, no surrogate, nothing above U+10FFFF. 0:
// there is none.
std::size_t utf8_size(std::string_view text) noexcept;
bool is_utf8(std::string_view text) noexcept;
// Adds the letter `code`, at most U+10FFFF; a surrogate as the three bytes that it would have.
void append_utf8(std::string& text, std::uint32_t code);

}  // namespace belljar
