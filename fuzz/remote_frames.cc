// Any bytes through the frames of a Connect stream and the JSON in them, whole and in pieces: no crash, the same either way, and
// nothing after an error. Every text survives base64.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/encoding.h"
#include "remote/e2b/events.h"
#include "remote/frames.h"

using namespace belljar::remote;

namespace {

struct Seen {
  std::string messages;
  bool refused = false;
  bool operator==(const Seen&) const = default;
};

Seen take(std::string_view bytes, std::size_t piece) {
  Seen seen;
  FrameParser frames;
  const auto sink = [&](bool last, std::string_view json) {
    if (last) {
      (void)e2b::parse_last(json);
    } else if (const auto event = e2b::parse_event(json)) {
      seen.messages += std::to_string(static_cast<int>(event->kind)) + event->bytes;
      if (event->kind == e2b::EventKind::kEnd && (event->exit_code < 0 || event->exit_code > 255)) std::abort();
    }
    (void)e2b::parse_entry(json);
    (void)e2b::parse_entries(json);
    (void)e2b::parse_complaint(json);
    seen.messages += (last ? "L" : "M") + std::to_string(json.size()) + " ";
    return true;
  };
  for (std::size_t at = 0; at < bytes.size() && !seen.refused; at += piece) {
    if (!frames.feed(bytes.substr(at, piece), sink)) seen.refused = true;
  }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (size == 0) return 0;
  const Seen whole = take(bytes, size);
  if (!(whole == take(bytes, 1)) || !(whole == take(bytes, 1 + data[0] % 16))) std::abort();
  if (from_base64(to_base64(bytes)) != bytes) std::abort();
  (void)from_base64(bytes);
  return 0;
}
