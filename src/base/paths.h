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

// Neither ".", ".." nor an empty component is in `path`, so that as text it is what it leads to, but for links.
constexpr bool is_literal(std::string_view path) noexcept {
  while (!path.empty()) {
    if (path.starts_with('/')) path.remove_prefix(1);
    const std::string_view part = path.substr(0, path.find('/'));
    if (part.empty() || part == "." || part == "..") return false;
    path.remove_prefix(part.size());
  }
  return true;
}

}  // namespace belljar
