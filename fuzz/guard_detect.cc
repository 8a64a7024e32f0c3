// Any bytes through the detector: no crash, places inside the text, a bounded score; wrapping keeps the delimiter to itself.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "detect/detect.h"

using namespace belljar::detect;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Scan found = scan(text);
  if (found.score < 0 || found.score > 100) std::abort();
  for (const Sign& sign : found.signs) {
    if (sign.begin > sign.end || sign.end > size) std::abort();
  }
  constexpr std::string_view kNonce = "q7w8e9r0t1y2u3i4";
  const std::string wrapped = wrap_result({.tool = text, .content = text}, kNonce);
  std::size_t count = 0;
  for (std::size_t at = wrapped.find(kNonce); at != std::string::npos; at = wrapped.find(kNonce, at + 1)) ++count;
  if (count != 2) std::abort();
  return 0;
}
