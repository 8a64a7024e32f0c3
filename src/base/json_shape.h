// Depth and size of a JSON text from an untrusted source, before a parser spends memory or stack on it.
#pragma once

#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>

namespace belljar {

struct JsonShape {
  std::size_t deepest = 0;  // objects and arrays inside each other
  std::size_t commas = 0;   // outside of strings: members and elements, less one for each object and array
};

// Of any text; what is no JSON has some shape as well.
inline JsonShape json_shape(std::string_view text) noexcept {
  JsonShape shape;
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') ++i;
    else if (c == '"') in_string = !in_string;
    else if (in_string) continue;
    else if (c == '[' || c == '{') shape.deepest = ++depth > shape.deepest ? depth : shape.deepest;
    else if ((c == ']' || c == '}') && depth > 0) --depth;
    else if (c == ',') ++shape.commas;
  }
  return shape;
}

// Half of a character, as "\ud800" names it alone, becomes U+FFFD; all else stays as it is. JSON.stringify() writes such halves
// where a string was cut (ECMA-262, 25.5.2.3), RFC 8259 8.2 leaves open what they mean, and parsers refuse the whole text for them.
inline std::string without_lone_surrogates(std::string_view text) {
  // What "\uXXXX" at `at` stands for; 0: it is none, or no half.
  const auto half = [&](std::size_t at) {
    unsigned code = 0;
    if (text.size() < at + 6 || text.substr(at, 2) != "\\u") return 0U;
    const char* const end = text.data() + at + 6;
    const auto read = std::from_chars(end - 4, end, code, 16);
    return read.ec == std::errc() && read.ptr == end && code >= 0xD800 && code <= 0xDFFF ? code : 0U;
  };
  std::string whole;
  whole.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const unsigned first = text[at] == '\\' ? half(at) : 0;
    const bool is_pair = first != 0 && first < 0xDC00 && half(at + 6) >= 0xDC00;
    const std::size_t size = is_pair ? 12 : first != 0 ? 6 : text[at] == '\\' ? 2 : 1;
    whole += first != 0 && !is_pair ? "\\ufffd" : text.substr(at, size);
    at += size;
  }
  return whole;
}

}  // namespace belljar
