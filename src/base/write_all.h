#pragma once

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string_view>

#include "base/held_signal.h"

namespace belljar {

// All of it, across short writes and signals; for descriptors that block. False: errno says why (EFBIG, without the SIGXFSZ that
// setrlimit(2) tells of), and a part may be written.
inline bool write_all(int fd, std::string_view bytes) noexcept {
  const HeldSignal too_large(SIGXFSZ);
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno != EINTR) return false;
    if (wrote > 0) bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return true;
}

}  // namespace belljar
