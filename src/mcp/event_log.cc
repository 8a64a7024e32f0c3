// The last messages of each stream, so that a client that lost a connection can ask for the rest of it.
//
// All streams share one queue with one limit; the oldest message goes first, whosever it is. For each stream
// the number of its last message is kept apart from the messages. That makes a gap visible: after() counts
// the messages that are still there behind an id, and if they are fewer than the numbers say, something is
// missing, and the client is told so. A replay with a hole in it would look complete.
#include "mcp/event_log.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/format.h"

namespace belljar::mcp {
namespace {

std::string id_of(std::uint64_t stream, std::uint64_t index) { return format("{}-{}", stream, index); }

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return {};
  return value;
}

}  // namespace

HttpEvent EventLog::add(std::uint64_t stream, const std::string& line) {
  StreamEnd& known = streams_[stream];
  const std::uint64_t index = ++known.end;
  ++known.kept;
  kept_.push_back({stream, index, line});
  bytes_ += line.size();
  while (!kept_.empty() && (kept_.size() > limits_.events || bytes_ > limits_.bytes)) {
    bytes_ -= kept_.front().line.size();
    --streams_[kept_.front().stream].kept;
    kept_.pop_front();
  }
  return {id_of(stream, index), line};
}

HttpEvent EventLog::cursor(std::uint64_t stream) { return {id_of(stream, streams_[stream].end), {}}; }

bool EventLog::keeps(std::uint64_t stream) const {
  const auto known = streams_.find(stream);
  return known != streams_.end() && known->second.kept > 0;
}

void EventLog::forget(std::uint64_t stream) {
  const auto known = streams_.find(stream);
  if (known == streams_.end()) return;
  const bool kept = known->second.kept > 0;
  streams_.erase(known);
  if (!kept) return;
  std::erase_if(kept_, [&](const StoredEvent& event) {
    if (event.stream == stream) bytes_ -= event.line.size();
    return event.stream == stream;
  });
}

std::optional<EventLog::Replay> EventLog::after(std::string_view id) const {
  const std::size_t dash = id.find('-');
  if (dash == std::string_view::npos) return {};
  const auto stream = number(id.substr(0, dash)), index = number(id.substr(dash + 1));
  if (!stream || !index) return {};
  const auto known = streams_.find(*stream);
  if (known == streams_.end() || *index > known->second.end) return {};
  Replay rest{.stream = *stream, .events = {}};
  for (const StoredEvent& event : kept_) {
    if (event.stream == *stream && event.index > *index) rest.events.push_back({id_of(event.stream, event.index), event.line});
  }
  if (rest.events.size() != known->second.end - *index) return {};
  return rest;
}

}  // namespace belljar::mcp
