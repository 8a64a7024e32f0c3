// Paths as text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace belljar {

// The last component of a path: "b" of "/a/b" and of "b". Empty after a trailing slash, unlike basename(3).
constexpr std::string_view file_name(std::string_view path) noexcept { return path.substr(path.rfind('/') + 1); }

// The directory that an absolute path lies in: "/a" of "/a/b", "/" of "/a" and of "/".
inline std::string parent_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos || slash == 0 ? "/" : std::string(path.substr(0, slash));
}

}  // namespace belljar
