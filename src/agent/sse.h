// Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html): bytes of a stream as events. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace belljar::agent {

struct SseEvent {
  std::string name;  // empty: none was given
  std::string data;
  bool operator==(const SseEvent&) const = default;
};

class SseReader {
 public:
  // `on_event`: false ends the reading.
  SseReader(std::size_t most_bytes, std::function<bool(const SseEvent&)> on_event)
      : most_(most_bytes), on_event_(std::move(on_event)) {}
  // False: an event is larger than the limit, or `on_event` said so. Nothing is read any more then. An event that the end of the
  // stream cuts is none.
  bool feed(std::string_view bytes);

 private:
  bool end_line();

  const std::size_t most_;
  const std::function<bool(const SseEvent&)> on_event_;
  std::string line_;
  SseEvent event_;
  bool has_data_ = false, after_cr_ = false, at_start_ = true, ended_ = false;
};

}  // namespace belljar::agent
