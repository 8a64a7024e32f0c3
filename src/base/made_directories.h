// Makes missing directories and removes them again, for callers that leave nothing behind.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/owner.h"

namespace belljar {

// In the mode of a directory that goes with its maker: whoever finds one keeps nothing in it for later.
inline constexpr mode_t kTemporary = S_ISVTX;

// The destructor removes the directories that it made, as far as they are empty, but not in a forked child.
class MadeDirectories {
 public:
  MadeDirectories() = default;
  MadeDirectories(MadeDirectories&& other) noexcept : made_(std::exchange(other.made_, {})) {}
  MadeDirectories& operator=(MadeDirectories&& other) noexcept {
    std::swap(made_, other.made_);
    return *this;
  }
  ~MadeDirectories();

  struct Failure {
    int errnum = 0;    // 0: none
    std::string path;  // that could not be made
  };
  // `path`, absolute, and what is missing above it, mode 0700 and kTemporary.
  Failure make(const std::string& path);
  std::size_t count() const noexcept { return made_.size(); }
  void keep() noexcept;  // they stay

 private:
  std::vector<std::string> made_;  // the shallowest first
  OwningProcess owner_;
};

// `path` and what is missing above it, mode 0700, to stay; so do those that were temporary until now.
MadeDirectories::Failure make_directories(const std::string& path);

}  // namespace belljar
