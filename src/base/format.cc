#include "base/format.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace belljar {
namespace {

// Length of the valid UTF-8 sequence at `text`, 0 when invalid; `code` receives the code point.
std::size_t decode(std::string_view text, std::uint32_t& code) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  std::size_t length = 0;
  if (lead < 0x80) {
    code = lead;
    return 1;
  }
  if ((lead & 0xE0U) == 0xC0) length = 2, code = lead & 0x1FU;
  else if ((lead & 0xF0U) == 0xE0) length = 3, code = lead & 0x0FU;
  else if ((lead & 0xF8U) == 0xF0) length = 4, code = lead & 0x07U;
  else return 0;
  if (text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return 0;
    code = (code << 6) | (byte(i) & 0x3FU);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[length] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return 0;
  return length;
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
    std::uint32_t code = 0;
    const std::size_t length = decode(text, code);
    if (length == 0) {
      result += format("\\x{:02x}", static_cast<unsigned char>(text[0]));
      text.remove_prefix(1);
      continue;
    }
    if (!deceptive(code)) result += text.substr(0, length);
    else if (code < 0x80) result += format("\\x{:02x}", code);
    else result += format("\\u{{{:04x}}}", code);
    text.remove_prefix(length);
  }
  return result;
}

std::string quoted(std::string_view text) { return "`" + escaped(text) + "`"; }

}  // namespace belljar
