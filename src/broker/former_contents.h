// The contents of git's control files that the command removed or moved away.
//
// Many programs change a file by removing it and writing it anew (tar, cp -a, install, editors with backups), or move a directory
// aside and copy it back. Settings that a file held before may stay (git_judge.h), so they must be known after the name was gone.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace belljar::broker {

// Safe from any thread.
class FormerContents {
 public:
  static constexpr std::size_t kMostNames = 256;
  static constexpr std::size_t kMostContents = 4;  // of one name: the first, which the user wrote, and the latest
  static constexpr std::size_t kMostBytes = 16U << 20;

  // Remembers `content`, found at `path` (absolute, in the callers' view). Beyond kMostNames and kMostBytes it is not remembered.
  void remember(const std::string& path, std::string content);
  // Oldest first.
  std::vector<std::string> of(const std::string& path) const;

 private:
  mutable std::mutex mutex_;  // guards what follows
  std::map<std::string, std::vector<std::string>> contents_;
  std::size_t bytes_ = 0;
};

}  // namespace belljar::broker
