// The output of one command, as much of it as is kept: the first piece and the last, by absolute offsets, so that a reader can come
// back for more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace belljar::tools {

struct Page {
  std::string bytes;
  std::uint64_t offset = 0;  // of the first byte; behind what was asked for where that was dropped
  std::uint64_t next = 0;    // where the next page begins
  std::uint64_t total = 0;   // written so far
};

// Safe from any thread.
class Spool {
 public:
  static constexpr std::size_t kHead = std::size_t{64} << 10;
  static constexpr std::size_t kTail = std::size_t{1} << 20;

  void append(std::string_view bytes);
  // At most `limit` bytes from `offset` on, never cut inside a UTF-8 sequence where more of it is there.
  Page read(std::uint64_t offset, std::size_t limit) const;
  std::uint64_t total() const;
  std::uint64_t lines() const;  // newlines so far

 private:
  mutable std::mutex mutex_;
  // guarded by mutex_
  std::string head_;
  std::string tail_;              // what came after head_, the oldest of it dropped
  std::uint64_t tail_begin_ = 0;  // offset of its first byte
  std::uint64_t total_ = 0, lines_ = 0;
};

}  // namespace belljar::tools
