// Letters and digits of ASCII, whatever the locale says.
#pragma once

namespace belljar::detect {

constexpr bool is_lower(char c) noexcept { return c >= 'a' && c <= 'z'; }
constexpr bool is_upper(char c) noexcept { return c >= 'A' && c <= 'Z'; }
constexpr bool is_letter(char c) noexcept { return is_lower(c) || is_upper(c); }
constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr char lower(char c) noexcept { return is_upper(c) ? static_cast<char>(c + 32) : c; }

}  // namespace belljar::detect
