#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <string>

namespace belljar {

// What there is to read from here on: all of it, or its first `most` bytes. Who must know whether there is more asks for one more
// than that. For descriptors that block. nullopt, with errno: it cannot be read.
inline std::optional<std::string> read_at_most(int fd, std::size_t most) {
  std::string text;
  char buffer[16384];
  while (text.size() < most) {
    const ssize_t got = ::read(fd, buffer, std::min(sizeof buffer, most - text.size()));
    if (got < 0 && errno != EINTR) return {};
    if (got == 0) break;
    if (got > 0) text.append(buffer, static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace belljar
