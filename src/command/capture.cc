// Output under a cap, cut between characters. Capture keeps the head of a stream and counts the
// rest; the cut is made once, at the end. Head does the same for a stream that is passed on while
// it comes, where bytes that went out cannot be taken back: a sequence that the cap may cut is held
// back until it is complete or the stream ends. In both the kept text has no hole: once a byte was
// dropped, no later byte is kept, even when a shorter one would fit.
//
// The lead byte alone tells the length of a UTF-8 sequence (RFC 3629, section 3): C2 to DF two
// bytes, E0 to EF three, F0 to F4 four. C0, C1 and F5 to FF begin none. Bytes that are no UTF-8 are
// not touched.
#include "command/capture.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace belljar::command {
namespace {

// Of the UTF-8 sequence that `lead` begins; 1 for what begins none.
std::size_t sequence_length(char lead) noexcept {
  const auto byte = static_cast<unsigned char>(lead);
  return byte > 0xF4 ? 1 : byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC2 ? 2 : 1;
}

}  // namespace

void Capture::append(std::string_view bytes) {
  output_.total += bytes.size();
  const std::uint64_t room = cap_ - std::min<std::uint64_t>(cap_, output_.bytes.size());
  // Once something was dropped nothing is kept any more: the kept text is a head, without holes.
  if (output_.omitted == 0)
    output_.bytes.append(bytes.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(room, bytes.size()))));
  output_.omitted = output_.total - output_.bytes.size();
}

void Capture::skip(std::uint64_t bytes) noexcept {
  output_.total += bytes;
  output_.omitted += bytes;
}

Output Capture::finish() && {
  if (output_.omitted > 0) {
    output_.bytes.resize(output_.bytes.size() - incomplete_tail(output_.bytes));
    output_.omitted = output_.total - output_.bytes.size();
  }
  return std::move(output_);
}

std::size_t Head::pass(std::string_view text) noexcept {
  if (!cap_) return text.size();
  const std::uint64_t room = *cap_ - passed_;
  std::size_t size = over_ ? 0 : static_cast<std::size_t>(std::min<std::uint64_t>(room, text.size()));
  const std::size_t tail = incomplete_tail(text.substr(0, size));
  if (tail > 0 && size - tail + sequence_length(text[size - tail]) > room) size -= tail;
  over_ = over_ || text.size() > room;
  held_ = over_ ? 0 : text.size() - size;
  dropped_ += text.size() - size - held_;
  passed_ += size;
  return size;
}

std::size_t incomplete_tail(std::string_view text) noexcept {
  const std::size_t look = std::min<std::size_t>(3, text.size());
  for (std::size_t back = 1; back <= look; ++back) {
    const char byte = text[text.size() - back];
    if ((static_cast<unsigned char>(byte) & 0xC0U) == 0x80) continue;  // a continuation byte: its lead is further left
    return sequence_length(byte) > back ? back : 0;
  }
  return 0;
}

}  // namespace belljar::command
