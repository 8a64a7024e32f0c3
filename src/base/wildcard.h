// Patterns with `*`. Iterative with one point to go back to, so the cost is at most |pattern| * |text|.
#pragma once

#include <cstddef>
#include <string_view>

namespace belljar {

// Whether `pattern` is the whole of `text`. `unit(at, c, next)`: does what stands at `at` of the pattern match the character; if so
// `next` is set to what follows it.
template <class Unit>
bool wildcard_match(std::string_view pattern, std::string_view text, const Unit& unit) noexcept {
  constexpr std::size_t kNowhere = std::string_view::npos;
  std::size_t p = 0, t = 0, star = kNowhere, mark = 0;
  while (t < text.size()) {
    std::size_t next = 0;
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (p < pattern.size() && unit(p, text[t], next)) {
      p = next;
      ++t;
    } else if (star != kNowhere) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace belljar
