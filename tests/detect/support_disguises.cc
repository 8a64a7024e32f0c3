#include "detect/support_disguises.h"

#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace belljar::detect {
namespace {

std::string each(std::string_view text, const char* pattern) {
  std::string result;
  for (const char c : text) {
    char piece[16];
    std::snprintf(piece, sizeof piece, pattern, static_cast<unsigned>(static_cast<unsigned char>(c)));
    result += piece;
  }
  return result;
}

std::string utf8(std::uint32_t code) {
  const auto byte = [](std::uint32_t value) { return static_cast<char>(value); };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xC0U | (code >> 6U)), byte(0x80U | (code & 63U))};
  if (code < 0x10000) return {byte(0xE0U | (code >> 12U)), byte(0x80U | ((code >> 6U) & 63U)), byte(0x80U | (code & 63U))};
  return {byte(0xF0U | (code >> 18U)), byte(0x80U | ((code >> 12U) & 63U)), byte(0x80U | ((code >> 6U) & 63U)),
          byte(0x80U | (code & 63U))};
}

// `text` is well-formed.
std::vector<std::uint32_t> codes(std::string_view text) {
  std::vector<std::uint32_t> result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) result.push_back(byte);
    else if (byte >= 0xC0) result.push_back(byte & (byte < 0xE0 ? 0x1FU : byte < 0xF0 ? 0x0FU : 0x07U));
    else result.back() = (result.back() << 6U) | (byte & 0x3FU);
  }
  return result;
}

std::string mapped(std::string_view text, std::string (*map)(std::uint32_t)) {
  std::string result;
  for (const std::uint32_t code : codes(text)) result += map(code);
  return result;
}

bool is_lower(std::uint32_t code) { return code >= 'a' && code <= 'z'; }
bool is_upper(std::uint32_t code) { return code >= 'A' && code <= 'Z'; }

std::string rotated(std::uint32_t code) {
  return utf8(is_lower(code) ? 'a' + (code - 'a' + 13) % 26 : is_upper(code) ? 'A' + (code - 'A' + 13) % 26 : code);
}
std::string cyrillic(std::uint32_t code) {
  return utf8(code == 'a' ? 0x430 : code == 'e' ? 0x435 : code == 'o' ? 0x43E : code == 'i' ? 0x456 : code);
}

constexpr Disguise kDisguises[] = {
    {"base64", [](std::string_view text) { return "See the attachment: " + base64(text); }, false, false},
    {"base64-twice", [](std::string_view text) { return base64("config " + base64(text) + " end of it"); }, false, false},
    {"hexadecimal", [](std::string_view text) { return "data: " + each(text, "%02x"); }, false, false},
    {"percent", [](std::string_view text) { return each(text, "%%%02X"); }, false, false},
    {"entities",
     [](std::string_view text) { return mapped(text, [](std::uint32_t code) { return "&#" + std::to_string(code) + ";"; }); },
     false, false},
    {"zero-width", [](std::string_view text) { return mapped(text, [](std::uint32_t code) { return utf8(code) + utf8(0x200B); }); },
     false, true},
    {"rot13", [](std::string_view text) { return mapped(text, rotated); }, true, false},
    {"tag-characters",
     [](std::string_view text) {
       return "A recipe for soup. " + mapped(text, [](std::uint32_t code) { return utf8(code < 0x80 ? 0xE0000 + code : code); });
     },
     true, true},
    {"confusables", [](std::string_view text) { return mapped(text, cyrillic); }, true, false},
    {"fullwidth",
     [](std::string_view text) {
       return mapped(text, [](std::uint32_t code) { return utf8(is_lower(code) || is_upper(code) ? 0xFEE0 + code : code); });
     },
     true, false},
};

}  // namespace

std::string base64(std::string_view text) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string result;
  for (std::size_t i = 0; i < text.size(); i += 3) {
    unsigned bits = 0;
    for (std::size_t k = 0; k < 3; ++k) bits = (bits << 8U) | (i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      result += i + k > text.size() ? '=' : kLetters[(bits >> (18U - 6U * static_cast<unsigned>(k))) & 63U];
  }
  return result;
}

std::span<const Disguise> disguises() { return kDisguises; }

}  // namespace belljar::detect
