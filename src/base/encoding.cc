// Base64, hexadecimal, percent escapes and UTF-8. Decoders are strict: what could be spelled in a second way
// (missing padding, overlong UTF-8, surrogates) is no encoding, because two readers could otherwise see two
// values in one text.
#include "base/encoding.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ascii.h"

namespace belljar {
namespace {

constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kUrlLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string in_letters(std::string_view bytes, std::string_view letters) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (; !bytes.empty(); bytes.remove_prefix(bytes.size() < 3 ? bytes.size() : 3)) {
    const auto byte = [&](std::size_t i) -> std::uint32_t { return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0; };
    const std::uint32_t three = byte(0) << 16U | byte(1) << 8U | byte(2);
    for (std::size_t i = 0; i < 4; ++i) text += i <= bytes.size() ? letters[three >> (18 - 6 * i) & 63U] : '=';
  }
  return text;
}

void add_hex(std::string& text, char byte, Digits digits) {
  const std::string_view sixteen = digits == Digits::kSmall ? "0123456789abcdef" : "0123456789ABCDEF";
  text += sixteen[static_cast<unsigned char>(byte) >> 4U];
  text += sixteen[static_cast<unsigned char>(byte) & 15U];
}

}  // namespace

std::string to_hex(std::string_view bytes, Digits digits) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char byte : bytes) add_hex(text, byte, digits);
  return text;
}

std::optional<std::string> from_hex(std::string_view text) {
  std::string bytes;
  for (; !text.empty(); text.remove_prefix(2)) {
    const int byte = hex_byte(text);
    if (byte < 0) return {};
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

std::string to_base64(std::string_view bytes) { return in_letters(bytes, kLetters); }

std::string to_base64url(std::string_view bytes) { return in_letters(bytes, kUrlLetters); }

int base64_digit(char c) noexcept {
  return is_upper(c) ? c - 'A' : is_lower(c) ? c - 'a' + 26 : is_digit(c) ? c - '0' + 52 : c == '+' ? 62 : c == '/' ? 63 : -1;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return {};
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  text.remove_suffix(padding);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t held = 0;
  int bits = 0;
  for (const char c : text) {
    const int digit = base64_digit(c);
    if (digit < 0) return {};
    held = held << 6U | static_cast<std::uint32_t>(digit);
    if ((bits += 6) >= 8) bytes += static_cast<char>(held >> (bits -= 8) & 0xFFU);
  }
  return bytes;
}

std::string percent_encoded(std::string_view text, std::string_view kept, Digits digits) {
  std::string encoded;
  for (const char c : text) {
    if (is_alnum(c) || std::string_view("-._~").find(c) != std::string_view::npos || kept.find(c) != std::string_view::npos)
      encoded += c;
    else add_hex(encoded += '%', c, digits);
  }
  return encoded;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  while (!text.empty()) {
    const bool escape = text[0] == '%';
    const int byte = escape ? hex_byte(text.substr(1)) : text[0];
    if (escape && byte < 0) return {};
    decoded += static_cast<char>(byte);
    text.remove_prefix(escape ? 3 : 1);
  }
  return decoded;
}

std::size_t utf8_size(std::string_view text) noexcept {
  if (text.empty()) return 0;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t size = lead < 0xC2 || lead > 0xF4 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (size == 0 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return 0;
  }
  const bool wrong = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F) || (lead == 0xF0 && byte(1) < 0x90) ||
                     (lead == 0xF4 && byte(1) > 0x8F);
  return wrong ? 0 : size;
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t size = utf8_size(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

void append_utf8(std::string& text, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0U | (code >> 6U));
  } else if (code < 0x10000) {
    put(0xE0U | (code >> 12U)), put(0x80U | ((code >> 6U) & 63U));
  } else {
    put(0xF0U | ((code >> 18U) & 7U)), put(0x80U | ((code >> 12U) & 63U)), put(0x80U | ((code >> 6U) & 63U));
  }
  put(0x80U | (code & 63U));
}

}  // namespace belljar
