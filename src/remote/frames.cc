// Frames of a streaming call in the Connect protocol (https://connectrpc.com/docs/protocol, enveloped
// messages): one byte of flags, four bytes of length with the highest first, then the message. Flag 2 marks the
// last message, which holds the error, if there was one, and trailers; flag 1 a compressed message, which is
// refused because none was asked for.
//
// Bytes come in pieces of any size. What is complete is handed on at once, the rest waits in the buffer. The
// length is checked before the bytes are waited for, since a length that is nonsense would have this side store
// without bound. After a broken frame nothing more is read: without a length that can be trusted there is no
// way to find the beginning of the next one.
#include "remote/frames.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::remote {
namespace {

constexpr std::size_t kHead = 5;
constexpr unsigned kLast = 2;  // the flag; 1 is a compressed message, which nobody was asked for

Error wrong(std::string reason) { return Error(Code::kDataLoss, "the stream makes no sense").reason(std::move(reason)); }

std::size_t length_in(std::string_view head) noexcept {
  std::size_t length = 0;
  for (std::size_t i = 1; i < kHead; ++i) length = length << 8 | static_cast<unsigned char>(head[i]);
  return length;
}

}  // namespace

Result<void> FrameParser::feed(std::string_view bytes, const Sink& sink) {
  if (failed_) return wrong("it is broken already");
  buffer_ += bytes;
  std::size_t at = 0;
  while (buffer_.size() - at >= kHead) {
    const std::string_view rest = std::string_view(buffer_).substr(at);
    const auto flags = static_cast<unsigned char>(rest[0]);
    const std::size_t length = length_in(rest);
    failed_ = true;
    if (ended_) return wrong("there is more behind its end");
    if (flags != 0 && flags != kLast) return wrong(format("a message has the flags {}", flags));
    if (length > kLargestFrame) return wrong(format("a message would have {} bytes", length));
    failed_ = false;
    if (rest.size() - kHead < length) break;
    ended_ = flags == kLast;
    const std::string json(rest.substr(kHead, length));
    at += kHead + length;
    if (!sink(ended_, json)) {
      buffer_.clear();
      return {};
    }
  }
  buffer_.erase(0, at);
  if (ended_ && !buffer_.empty()) {
    failed_ = true;
    return wrong("there is more behind its end");
  }
  return {};
}

std::string make_frame(std::string_view json) {
  std::string frame(1, '\0');
  const auto length = static_cast<std::uint32_t>(json.size());
  for (int shift = 24; shift >= 0; shift -= 8) frame += static_cast<char>(length >> shift & 0xFF);
  return frame.append(json);
}

}  // namespace belljar::remote
