// Letters, digits and white space of ASCII, whatever the locale says.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace belljar {

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr bool is_lower(char c) noexcept { return c >= 'a' && c <= 'z'; }
constexpr bool is_upper(char c) noexcept { return c >= 'A' && c <= 'Z'; }
constexpr bool is_letter(char c) noexcept { return is_lower(c) || is_upper(c); }
constexpr bool is_alnum(char c) noexcept { return is_letter(c) || is_digit(c); }
constexpr char to_lower(char c) noexcept { return is_upper(c) ? static_cast<char>(c + 32) : c; }

// One digit or more, and nothing else.
constexpr bool is_number(std::string_view text) noexcept { return !text.empty() && std::ranges::all_of(text, is_digit); }

inline std::string lower_case(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), to_lower);
  return result;
}

// Alike but for the case of letters.
constexpr bool iequals(std::string_view a, std::string_view b) noexcept { return std::ranges::equal(a, b, {}, to_lower, to_lower); }

// Without white space, or what else counts as such, at both ends.
constexpr std::string_view trim(std::string_view text, std::string_view space = " \t\r\n\v\f") noexcept {
  const std::size_t first = text.find_first_not_of(space);
  return first == std::string_view::npos ? std::string_view() : text.substr(first, text.find_last_not_of(space) - first + 1);
}

}  // namespace belljar
