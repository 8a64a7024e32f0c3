// Takes a credential's value out of a WebSocket that a server speaks (RFC 6455). A message may come in fragments, and control
// frames between them: what looks at raw bytes sees a value with a frame's head in its middle, and lets it pass. So frames are
// read, and what is in those of data is one text, from message to message too. Each frame keeps its head, its length and its place.
// Pure.
//
// What this does not stop: a server that spells the value in a way of its own (a letter a ping).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "egress/credentials.h"
#include "egress/http.h"

namespace belljar::egress {

class WebSocketRestorer {
 public:
  explicit WebSocketRestorer(Restorer restorer) : restorer_(std::move(restorer)) {}
  // As those of Restorer. A frame whose payload waits for more holds up those behind it.
  std::string feed(std::string_view bytes, bool last);
  bool holds_little() const noexcept { return restorer_.holds_little(); }
  std::string give_early();
  // A frame that no client may get, or that could hide what is in it: masked, with an extension's bits, an unknown kind, a control
  // frame in pieces. Nothing from there on is given out, and the connection has to end.
  bool broken() const noexcept { return broken_; }

 private:
  struct Item {
    std::string whole;      // goes out as it is
    std::uint64_t due = 0;  // then so many bytes of what restorer_ gives
  };
  std::size_t consume_head(std::string_view bytes);
  std::size_t consume_payload(std::string_view bytes);
  bool read_head();
  void end_control();
  std::string give();

  Restorer restorer_;
  std::deque<Item> items_;
  std::string ready_;  // of what is due
  std::string head_;   // of a frame, as far as it came
  std::string control_;
  std::uint64_t left_ = 0;  // of the frame's payload
  bool in_control_ = false, broken_ = false;
};

// Takes values out of what a host says that knows some. Without begin() nothing is taken out.
class AnswerGuard {
 public:
  using Clock = std::chrono::steady_clock;
  void begin(const std::vector<const Credential*>& known);
  void begin_frames();  // a WebSocket has begun
  void end() { *this = {}; }
  // The answer breaks off. What may become a value stays back: half of one is no answer that ended so.
  void cut() { cut_ = true, due_ = Clock::time_point::max(); }
  bool active() const noexcept { return restorer_.has_value(); }
  bool broken() const noexcept { return frames_ && frames_->broken(); }
  Clock::time_point due() const noexcept { return due_; }  // when to give out the little that waits

  std::string filter(std::string_view bytes, bool last);
  std::string give_early();  // nothing unless it is due
  std::string restore(std::string_view whole) const { return restorer_->restore(whole); }
  void restore(HttpHead& head) const;

 private:
  std::optional<Restorer> restorer_;
  std::optional<WebSocketRestorer> frames_;  // instead
  Clock::time_point due_ = Clock::time_point::max();
  bool cut_ = false;
};

}  // namespace belljar::egress
