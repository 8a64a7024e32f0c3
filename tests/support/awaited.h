// Who waits for a lock of fcntl(2), as the kernel tells it: proc_locks(5).
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "base/format.h"

namespace belljar::test {

// Somebody waits for a lock of a file in `folder`.
inline bool is_awaited(const std::string& folder) {
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    if (line.find("-> OFDLCK") == std::string::npos) continue;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      struct stat now{};
      if (::stat(entry.path().c_str(), &now) == 0 && line.find(format(":{} ", now.st_ino)) != std::string::npos) return true;
    }
  }
  return false;
}

}  // namespace belljar::test
