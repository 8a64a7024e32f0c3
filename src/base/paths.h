// Paths as text.
#pragma once

#include <string_view>

namespace belljar {

// The last component of a path: "b" of "/a/b" and of "b". Empty after a trailing slash, unlike basename(3).
constexpr std::string_view file_name(std::string_view path) noexcept { return path.substr(path.rfind('/') + 1); }

}  // namespace belljar
