// What the streams of one HTTP session have said, for a client that lost one and resumes it: "Resumability and Redelivery" of the
// transport (2025-06-18, 2025-11-25). Pure.
//
// An id is "STREAM-PLACE": unique in the session, and a cursor in its own stream alone. What is kept is bounded, the oldest goes
// first. A gap is never passed over: who asks from before one is told that it is gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace belljar::mcp {

struct HttpEvent {
  std::string id, line;  // no line: the id alone, for who loses the stream before anything was said
};

struct EventLimits {
  std::size_t events = 1000;
  std::size_t bytes = std::size_t{4} << 20;
};

class EventLog {
 public:
  explicit EventLog(EventLimits limits = {}) : limits_(limits) {}

  HttpEvent add(std::uint64_t stream, const std::string& line);
  // An id behind all that was said on the stream so far.
  HttpEvent cursor(std::uint64_t stream);
  bool has_ids_of(std::uint64_t stream) const { return streams_.contains(stream); }
  bool keeps(std::uint64_t stream) const;  // an event of it
  void forget(std::uint64_t stream);

  struct Replay {
    std::uint64_t stream = 0;
    std::vector<HttpEvent> events;
  };
  // What that stream has said since. nullopt: it is no id of ours, or something of it is gone.
  std::optional<Replay> after(std::string_view id) const;

 private:
  struct StoredEvent {
    std::uint64_t stream = 0, index = 0;
    std::string line;
  };
  EventLimits limits_;
  std::deque<StoredEvent> kept_;  // oldest first
  std::size_t bytes_ = 0;
  struct StreamEnd {
    std::uint64_t end = 0;  // the place of the last event, from 1
    std::size_t kept = 0;
  };
  std::map<std::uint64_t, StreamEnd> streams_;  // those that have ids
};

}  // namespace belljar::mcp
