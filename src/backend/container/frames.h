// The engine's multiplexed stream: stdout and stderr of a container without a terminal in one, each piece behind a header of eight
// bytes {stream, 0, 0, 0, length}, the length with its highest byte first (Docker Engine API, "Attach to a container").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "belljar/result.h"

namespace belljar::backend::container {

enum class FrameStream : unsigned char { kStdin = 0, kStdout = 1, kStderr = 2, kSystemError = 3 };

// Takes the stream in pieces of any size: a header may arrive byte by byte, a payload in parts. Remembers at most one header.
class FrameParser {
 public:
  using Sink = std::function<void(FrameStream stream, std::string_view part)>;

  // Errors: kDataLoss, this is no such stream; then nothing more is taken.
  Result<void> feed(std::string_view bytes, const Sink& sink);
  // Whether the stream may end here. Errors: kDataLoss, inside a frame.
  Result<void> check_end() const;

 private:
  std::array<unsigned char, 8> header_{};
  std::size_t have_ = 0;    // bytes of the header
  std::uint32_t left_ = 0;  // of the payload
  bool broken_ = false;
};

}  // namespace belljar::backend::container
