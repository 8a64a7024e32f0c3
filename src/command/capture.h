// One captured stream: keeps the head up to a cap, counts the rest. A value that grows; no descriptors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "belljar/exec_result.h"

namespace belljar::command {

class Capture {
 public:
  explicit Capture(std::uint64_t cap) noexcept : cap_(cap) {}

  void append(std::string_view bytes);
  // Of a stream that is over its cap: bytes that nobody has, but that were counted elsewhere.
  void skip(std::uint64_t bytes) noexcept;
  bool over() const noexcept { return output_.total > cap_; }
  // Ends the stream: what was kept never ends inside a UTF-8 sequence that the cap cut.
  Output finish() &&;

 private:
  std::uint64_t cap_;
  Output output_;
};

// Which bytes of a stream are passed on under a cap as they come: a head without holes, which ends inside no UTF-8 sequence that
// the cap cut. A value; no descriptors.
class Head {
 public:
  explicit Head(std::optional<std::uint64_t> cap) noexcept : cap_(cap) {}

  // `text`: the held() bytes of last time, then what has come since. Returns how many of its first bytes pass; the next held() are
  // the beginning of a sequence that would not fit: they are for the next call, or pass where the stream ends. The rest is dropped.
  std::size_t pass(std::string_view text) noexcept;
  std::size_t held() const noexcept { return held_; }  // 0 to 3
  std::uint64_t dropped() const noexcept { return dropped_; }

 private:
  std::optional<std::uint64_t> cap_;
  std::uint64_t passed_ = 0, dropped_ = 0;
  std::size_t held_ = 0;
  bool over_ = false;
};

// How many bytes at the end of `text` are the beginning of a UTF-8 sequence whose rest is missing (0 to 3). Bytes that are no UTF-8
// at all are left alone: binary output is the program's business.
std::size_t incomplete_tail(std::string_view text) noexcept;

}  // namespace belljar::command
