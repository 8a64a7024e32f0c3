// Makes missing directories and removes them again, for callers that leave nothing behind.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/owner.h"

namespace belljar {

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
  // `path`, absolute, and what is missing above it, mode 0700.
  Failure make(const std::string& path);
  std::size_t count() const noexcept { return made_.size(); }
  // They stay.
  void keep() noexcept { made_.clear(); }

 private:
  std::vector<std::string> made_;  // the shallowest first
  OwningProcess owner_;
};

// `path` and what is missing above it, to stay.
inline MadeDirectories::Failure make_directories(const std::string& path) {
  MadeDirectories made;
  MadeDirectories::Failure failure = made.make(path);
  made.keep();
  return failure;
}

}  // namespace belljar
