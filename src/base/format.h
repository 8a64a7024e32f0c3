// Text formatting for all rooms: {fmt}, by its light header only.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace belljar {

using fmt::format;

// Quotes and escapes what a sandbox, a file or a user wrote: C0, C1, DEL, bidi controls, zero-width and invalid UTF-8 come out as
// \xNN or \u{NNNN}, inside back-quotes. Terminal escapes in a message are an attack (CVE-2024-27936, CVE-2024-52005).
std::string quoted(std::string_view text);
// Of a std::string, std::quoted would be the nearer one wherever a header of others (<filesystem>, <iomanip>) has brought it.
inline std::string quoted(const std::string& text) { return quoted(std::string_view(text)); }
inline std::string quoted(std::string& text) { return quoted(std::string_view(text)); }
inline std::string quoted(const char* text) { return quoted(std::string_view(text)); }
// The same escaping without the quotes.
std::string escaped(std::string_view text);

}  // namespace belljar
