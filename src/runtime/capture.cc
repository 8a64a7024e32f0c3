#include "runtime/capture.h"

#include <algorithm>

namespace belljar::runtime {

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

std::size_t incomplete_tail(std::string_view text) noexcept {
  const std::size_t look = std::min<std::size_t>(3, text.size());
  for (std::size_t back = 1; back <= look; ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0U) == 0x80) continue;  // a continuation byte: its lead is further left
    const std::size_t length = byte >= 0xF0 && byte <= 0xF4 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC2 ? 2 : 1;
    return byte <= 0xF4 && length > back ? back : 0;
  }
  return 0;
}

}  // namespace belljar::runtime
