// How many bytes a directory tree occupies on its file system, measured in slices so that the caller's event loop goes on in
// between.
//
// Allocated blocks are counted (holes are not), each hard-linked file once, links are not followed, mounts below are not entered.
// The tree is hostile and changes while we read: every directory is opened from the root's descriptor with openat2(2),
// RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS, so nothing renamed in the way leads us out; two descriptors are open at a time however
// deep it is.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/unique_fd.h"
#include "belljar/result.h"
#include "belljar/units.h"

namespace belljar::kernel {

struct DiskUsage {
  Bytes used;
  std::uint64_t files = 0;
  Bytes largest;  // length of the largest file, as its owner sees it
  // Directories we could not read (mode 000), deeper than a path can be long, or beyond kMostPendingBytes.
  std::uint64_t unseen = 0;
};

class DiskScan {
 public:
  static constexpr std::size_t kMostPendingBytes = 32U << 20;  // of names of directories still to read

  // `root` is borrowed: a descriptor of the directory.
  explicit DiskScan(int root);

  // Goes on for about `slice`. True when the scan is complete.
  bool advance(std::chrono::microseconds slice);
  const DiskUsage& result() const noexcept { return usage_; }
  // Time spent in advance() so far.
  std::chrono::microseconds cost() const noexcept { return cost_; }

 private:
  bool open_next();
  void read_some();
  void add(const char* name, unsigned char type);

  int root_;
  std::uint64_t device_ = 0;
  std::vector<std::string> pending_;  // paths below the root, "." for itself
  std::size_t pending_bytes_ = 0;
  std::string current_;
  UniqueFd directory_;
  std::unordered_set<std::uint64_t> linked_;  // inodes with more than one name that were counted
  DiskUsage usage_;
  std::chrono::microseconds cost_{0};
};

// Bytes in use on the file system that `fd` is on, for about a microsecond. Its growth bounds that of a tree on it only while
// nobody else frees anything.
Result<Bytes> file_system_used(int fd);

}  // namespace belljar::kernel
