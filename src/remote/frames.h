// The frames of a Connect stream: a flag byte, four bytes of length, a JSON message. Fuzzed: fuzz/remote_frames.cc.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "belljar/result.h"

namespace belljar::remote {

inline constexpr std::size_t kLargestFrame = 8U << 20;

class FrameParser {
 public:
  // False: enough, the rest of what was fed is dropped. `last`: the end of the stream.
  using Sink = std::function<bool(bool last, std::string_view json)>;
  // Takes bytes as they come. Errors: kDataLoss, no frame of ours, a frame after the last one; after one, nothing more is taken.
  Result<void> feed(std::string_view bytes, const Sink& sink);
  bool ended() const noexcept { return ended_; }

 private:
  std::string buffer_;
  bool ended_ = false, failed_ = false;
};

std::string make_frame(std::string_view json);

}  // namespace belljar::remote
