// Lists of words as text, "cp mv ln": how this room's tables are written.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace belljar::shell {

// `word` is one of `list`, whose words are separated by single spaces. The empty word is none.
inline bool has_word(std::string_view list, std::string_view word) noexcept {
  for (std::size_t at = list.find(word); !word.empty() && at != std::string_view::npos; at = list.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || list[at - 1] == ' ') && (end == list.size() || list[end] == ' ')) return true;
  }
  return false;
}

// ASCII alone, whatever the locale.
inline std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

}  // namespace belljar::shell
