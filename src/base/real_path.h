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

}  // namespace belljar
