// Server-sent events: bytes of a stream, in pieces of any size, as events.
//
// Lines end with CR, LF or both, and a piece may end between the two, which `after_cr_` remembers. An event
// ends with an empty line, and one without data is none. An event that the end of the stream cuts is dropped,
// as the specification demands. The limit covers a line and the data collected so far, so that a server
// cannot make us keep more.
#include "agent/sse.h"

#include <string_view>

namespace belljar::agent {

bool SseReader::feed(std::string_view bytes) {
  for (const char c : bytes) {
    if (ended_) return false;
    const bool second_half = after_cr_ && c == '\n';
    after_cr_ = c == '\r';
    if (second_half) continue;
    if (c == '\n' || c == '\r') ended_ = !end_line();
    else if (line_.size() + event_.data.size() >= most_) ended_ = true;
    else line_ += c;
  }
  return !ended_;
}

bool SseReader::end_line() {
  std::string_view line = line_;
  if (at_start_ && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  at_start_ = false;
  bool go_on = true;
  if (line.empty()) {
    if (has_data_) go_on = on_event_(event_);
    event_ = {};
    has_data_ = false;
  } else {
    const std::string_view field = line.substr(0, line.find(':'));
    std::string_view value = field.size() == line.size() ? std::string_view() : line.substr(field.size() + 1);
    if (value.starts_with(' ')) value.remove_prefix(1);
    if (field == "event") event_.name = value;
    if (field == "data") {
      if (has_data_) event_.data += '\n';
      event_.data += value;
      has_data_ = true;
    }
  }
  line_.clear();
  return go_on;
}

}  // namespace belljar::agent
