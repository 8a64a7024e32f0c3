// Any bytes from a model's service: events do not depend on how the bytes arrive, and each wire makes an answer of them or an
// error.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "agent/json.h"
#include "agent/skill_file.h"
#include "agent/sse.h"
#include "agent/wire.h"

using namespace belljar;
using namespace belljar::agent;

namespace {

std::vector<SseEvent> events_of(std::string_view bytes, std::size_t piece) {
  std::vector<SseEvent> events;
  SseReader reader(2000, [&](const SseEvent& event) {
    events.push_back(event);
    return events.size() < 200;
  });
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    if (!reader.feed(bytes.substr(0, piece))) break;
  }
  return events;
}

void decode(ModelWire wire, const std::vector<SseEvent>& events) {
  std::string streamed;
  const auto decoder = wire_of(wire).decoder([&](std::string_view piece) { streamed += piece; });
  for (const SseEvent& event : events) {
    if (!decoder->handle(event)) return;
  }
  const auto reply = decoder->finish();
  if (!reply) return;
  if (reply->message.text != streamed) std::abort();
  // What a model said can be said to it again.
  const ModelRequest request{.messages = {reply->message}};
  if (!Json::accept(dump(wire_of(wire).body("m", request)))) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::vector<SseEvent> events = events_of(bytes, size + 1);
  if (events != events_of(bytes, 3)) std::abort();
  for (const ModelWire wire : {ModelWire::kAnthropic, ModelWire::kOpenAiChat, ModelWire::kOpenAiResponses}) decode(wire, events);
  const auto skill = parse_skill(bytes);
  if (skill && (skill->name.empty() || skill->name.find_first_of("/\n ") != std::string::npos)) std::abort();
  return 0;
}
