// realpath(3) as a string.
#pragma once

#include <climits>
#include <cstdlib>
#include <string>

namespace belljar {

// Absolute, all symbolic links resolved; empty, with errno, where that fails.
inline std::string real_path(const std::string& path) {
  char resolved[PATH_MAX];
  return ::realpath(path.c_str(), resolved) == nullptr ? std::string() : std::string(resolved);
}

// Where that fails, the path as it was given.
inline std::string real_path_or_given(const std::string& path) {
  const std::string real = real_path(path);
  return real.empty() ? path : real;
}

}  // namespace belljar
