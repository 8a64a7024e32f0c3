// The paths of directories in which calls start, their callers' working directories and descriptors, without a readlink of 3 us for
// each call.
//
// An entry is the path that the kernel gave for that very directory (device, inode, mount), which the entry holds open, so that its
// number is nobody else's. It is good as long as no directory inside got another path: every such rename owns
// Context::directories alone, and forgets all entries by it (forget_all); the others, who ask and fill, share that lock. A rename
// by somebody outside is not seen for up to kKept: until then a name in that directory is judged by the path that it had. That
// gives a command nothing: what it writes there now it could have written before the rename, which carried all of it along
// unjudged. Safe from any thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace belljar::broker {

inline constexpr unsigned kMountId = 0x1000;  // STATX_MNT_ID, Linux 5.8

class StartPaths {
 public:
  static constexpr std::size_t kMost = 32;
  static constexpr auto kKept = std::chrono::milliseconds(200);

  // Of a directory descriptor of ours, in the caller's view. Empty: unknown, or it is no more. With Context::directories held.
  std::string of(int dir);
  // With Context::directories owned.
  void forget_all() noexcept { ++epoch_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    std::uint64_t device = 0, inode = 0, mount = 0, epoch = 0;
    Clock::time_point asked;
    std::string path;
    UniqueFd held;
  };
  std::atomic<std::uint64_t> epoch_ = 0;
  std::mutex mutex_;  // guards what follows
  std::vector<Entry> entries_;
  std::size_t next_ = 0;  // to be replaced
};

}  // namespace belljar::broker
