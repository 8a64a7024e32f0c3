#include "backend/container/frames.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::backend::container {
namespace {

constexpr unsigned char kLastStream = 3;
// An engine sends what it read at once, 32 KiB or so. A length beyond this is a stream of something else (a terminal's bytes, an
// error in plain text), which would swallow everything after it.
constexpr std::uint32_t kLargestFrame = 64U << 20;

Error not_frames(std::string why) {
  return Error(Code::kDataLoss, "cannot read the container's output")
      .reason("the engine sent a stream that is not framed: " + std::move(why))
      .next("check that the address is a Docker Engine API, 1.40 or newer");
}

}  // namespace

Result<void> FrameParser::feed(std::string_view bytes, const Sink& sink) {
  if (broken_) return not_frames("it went wrong before");
  while (!bytes.empty()) {
    if (left_ > 0) {
      const std::size_t size = std::min<std::size_t>(left_, bytes.size());
      sink(static_cast<FrameStream>(header_[0]), bytes.substr(0, size));
      left_ -= static_cast<std::uint32_t>(size);
      bytes.remove_prefix(size);
      if (left_ == 0) have_ = 0;
      continue;
    }
    header_[have_++] = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    if (have_ < header_.size()) continue;
    left_ = static_cast<std::uint32_t>(header_[4]) << 24 | static_cast<std::uint32_t>(header_[5]) << 16 |
            static_cast<std::uint32_t>(header_[6]) << 8 | header_[7];
    broken_ = header_[0] > kLastStream || header_[1] != 0 || header_[2] != 0 || header_[3] != 0 || left_ > kLargestFrame;
    if (broken_) return not_frames(format("a header of type {} and length {}", header_[0], left_));
    if (left_ == 0) have_ = 0;
  }
  return {};
}

Result<void> FrameParser::check_end() const {
  if (have_ == 0) return {};
  return Error(Code::kDataLoss, "cannot read the container's output").reason("the engine's stream ended inside a frame");
}

}  // namespace belljar::backend::container
