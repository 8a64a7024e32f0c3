// Cells of the corpora's tables (*.tsv): `\n`, `\r`, `\e`, `\a` and `\\` stand for what a line cannot hold.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace belljar::detect {

inline std::string unescaped(std::string_view cell) {
  constexpr std::string_view kLetters = "nrea\\", kMeant = "\n\r\x1b\a\\";
  std::string text;
  for (std::size_t i = 0; i < cell.size(); ++i) {
    const std::size_t letter = cell[i] == '\\' && i + 1 < cell.size() ? kLetters.find(cell[i + 1]) : std::string_view::npos;
    text += letter == std::string_view::npos ? cell[i] : kMeant[letter];
    if (letter != std::string_view::npos) ++i;
  }
  return text;
}

}  // namespace belljar::detect
