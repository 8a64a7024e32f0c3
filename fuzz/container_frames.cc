// Any bytes through the engine's frames and our records, whole and in pieces: no crash, the same either way, and nothing after an
// error.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "backend/container/frames.h"
#include "backend/container/records.h"

using namespace belljar::backend::container;

namespace {

struct Seen {
  std::string out, rest, records;
  bool refused = false;
  bool operator==(const Seen&) const = default;
};

Seen take(std::string_view bytes, std::size_t piece) {
  Seen seen;
  FrameParser frames;
  RecordParser records;
  const auto sink = [&](FrameStream stream, std::string_view part) {
    (stream == FrameStream::kStdout ? seen.out : seen.rest) += part;
    if (stream != FrameStream::kStdout) return;
    const auto taken = records.feed(part, [&](char type, std::uint32_t id, std::string_view payload) {
      seen.records += type + std::to_string(id) + ":" + std::to_string(payload.size()) + " ";
      (void)parse_ended(payload);
      (void)number_in(payload, payload.size() / 2);
    });
    if (!taken) seen.refused = true;
  };
  for (std::size_t at = 0; at < bytes.size() && !seen.refused; at += piece) {
    if (!frames.feed(bytes.substr(at, piece), sink)) seen.refused = true;
  }
  if (!seen.refused) (void)frames.check_end();
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (size == 0) return 0;
  const Seen whole = take(bytes, size);
  const Seen single = take(bytes, 1);
  const Seen some = take(bytes, 1 + data[0] % 16);
  if (!whole.refused && (!(whole == single) || !(whole == some))) std::abort();
  if (whole.refused != single.refused) std::abort();
  return 0;
}
