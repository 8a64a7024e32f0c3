// What a JSON text holds, before a parser takes memory or stack for it: strangers write it.
#pragma once

#include <cstddef>
#include <string_view>

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

}  // namespace belljar
