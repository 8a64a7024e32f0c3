// Escaping of text that came from outside, for people and logs.
//
// Besides control characters this covers what changes how a line is shown: bidi overrides can turn the end of
// a file name around (CVE-2021-42574), zero-width characters and tags hide text, and line separators begin a
// new line in some viewers. Bytes that are no UTF-8 are shown as \xNN each, so nothing is dropped and two
// different texts stay different.
#include "base/format.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/encoding.h"

namespace belljar {
namespace {

// The code point of a well-formed sequence.
std::uint32_t code_of(std::string_view letter) noexcept {
  std::uint32_t code = static_cast<unsigned char>(letter[0]);
  if (letter.size() > 1) code &= 0x7FU >> letter.size();
  for (const char c : letter.substr(1)) code = (code << 6) | (static_cast<unsigned char>(c) & 0x3FU);
  return code;
}

// Controls, bidi overrides and isolates, zero-width characters, line separators, tags: what changes how a line is shown.
bool deceptive(std::uint32_t code) noexcept {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0xAD || code == 0x61C || (code >= 0x200B && code <= 0x200F) ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2060 && code <= 0x206F) || code == 0xFEFF ||
         (code >= 0xE0000 && code <= 0xE007F);
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_size(text);
    if (length == 0) {
      result += format("\\x{:02x}", static_cast<unsigned char>(text[0]));
      text.remove_prefix(1);
      continue;
    }
    const std::uint32_t code = code_of(text.substr(0, length));
    if (!deceptive(code)) result += text.substr(0, length);
    else if (code < 0x80) result += format("\\x{:02x}", code);
    else result += format("\\u{{{:04x}}}", code);
    text.remove_prefix(length);
  }
  return result;
}

std::string quoted(std::string_view text) { return "`" + escaped(text) + "`"; }

}  // namespace belljar
