#include "tools/patch_names.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace belljar::tools {
namespace {

std::optional<char> escape_of(char letter) {
  constexpr std::string_view kLetters = "abtnvfr\"\\", kBytes = "\a\b\t\n\v\f\r\"\\";
  const std::size_t at = kLetters.find(letter);
  if (at == std::string_view::npos) return {};
  return kBytes[at];
}

// Where the quoted text that begins `text` ends, its closing quote included; 0: nowhere.
std::size_t quoted_size(std::string_view text) {
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '\\') ++i;
    else if (text[i] == '"') return i + 1;
  }
  return 0;
}

}  // namespace

std::optional<std::string> unquote_name(std::string_view text) {
  if (!text.starts_with('"')) return std::string(text);
  if (quoted_size(text) != text.size()) return {};
  text = text.substr(1, text.size() - 2);
  std::string name;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      name += text[i];
      continue;
    }
    if (++i == text.size()) return {};
    if (const auto byte = escape_of(text[i])) {
      name += *byte;
      continue;
    }
    unsigned value = 0;
    for (std::size_t digit = 0; digit < 3; ++digit, ++i) {
      if (i == text.size() || text[i] < '0' || text[i] > '7') return {};
      value = value * 8 + static_cast<unsigned>(text[i] - '0');
    }
    --i;
    if (value > 0xFF) return {};
    name += static_cast<char>(value);
  }
  return name;
}

std::optional<std::string> name_of_header(std::string_view rest) {
  if (rest.starts_with('"')) return unquote_name(rest.substr(0, quoted_size(rest)));
  return std::string(rest.substr(0, rest.find('\t')));
}

std::optional<std::pair<std::string, std::string>> names_of_git_line(std::string_view rest) {
  std::string_view first, second;
  if (rest.starts_with('"')) {
    const std::size_t size = quoted_size(rest);
    if (size == 0 || size + 1 >= rest.size()) return {};
    first = rest.substr(0, size), second = rest.substr(size + 1);
  } else if (const std::size_t quote = rest.find(" \""); quote != std::string_view::npos) {
    first = rest.substr(0, quote), second = rest.substr(quote + 1);
  } else {
    // Names may hold blanks: without quotes only equal ones can be told apart, and others are told by headers that follow.
    if (rest.size() < 5 || rest.size() % 2 == 0 || rest[rest.size() / 2] != ' ') return {};
    first = rest.substr(0, rest.size() / 2), second = rest.substr(rest.size() / 2 + 1);
  }
  const auto from = unquote_name(first), to = unquote_name(second);
  if (!from || !to) return {};
  auto old_name = without_first(*from), new_name = without_first(*to);
  if (!old_name || !new_name || (rest[0] != '"' && second[0] != '"' && *old_name != *new_name)) return {};
  return std::pair(*std::move(old_name), *std::move(new_name));
}

std::optional<std::string> without_first(std::string_view name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos || slash + 1 == name.size()) return {};
  return std::string(name.substr(slash + 1));
}

}  // namespace belljar::tools
