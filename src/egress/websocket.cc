// Frames of a WebSocket, read so that values are found across their borders (websocket.h has the idea).
//
// Frames keep their order and their lengths. `items_` is what the client is owed, in order: bytes that are
// ready (a frame's head, a whole control frame), then so many bytes of payload, which come out of one text
// for all data frames. A frame whose payload still waits holds up those behind it. What a client must not
// receive from a server (reserved bits, a mask, a long control frame) breaks the connection: an extension
// could hide the payload.
#include "egress/websocket.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "egress/credentials.h"
#include "egress/http.h"

namespace belljar::egress {
namespace {

// RFC 6455 section 5.2.
constexpr unsigned kFin = 0x80, kReserved = 0x70, kKind = 0x0F, kControl = 0x08, kMasked = 0x80, kLength = 0x7F;
constexpr unsigned kLastData = 2, kLastControl = 10, kTwoBytes = 126, kEightBytes = 127, kMostControl = 125;
constexpr std::size_t kShortHead = 2, kMiddleHead = 4, kLongHead = 10;

unsigned bits_at(std::string_view text, std::size_t at) { return static_cast<unsigned char>(text[at]); }

std::size_t head_size(std::string_view head) {
  if (head.size() < kShortHead) return kShortHead;
  const unsigned length = bits_at(head, 1) & kLength;
  return length == kEightBytes ? kLongHead : length == kTwoBytes ? kMiddleHead : kShortHead;
}

std::uint64_t payload_size(std::string_view head) {
  if (head.size() == kShortHead) return bits_at(head, 1) & kLength;
  std::uint64_t size = 0;
  for (std::size_t at = kShortHead; at < head.size(); ++at) size = size << 8 | bits_at(head, at);
  return size;
}

}  // namespace

// False: no client may get it.
bool WebSocketRestorer::read_head() {
  const unsigned first = bits_at(head_, 0), kind = first & kKind;
  in_control_ = (kind & kControl) != 0;
  left_ = payload_size(head_);
  if ((first & kReserved) != 0 || (bits_at(head_, 1) & kMasked) != 0) return false;
  if (in_control_) return kind <= kLastControl && (first & kFin) != 0 && left_ <= kMostControl;
  return kind <= kLastData && left_ >> 63 == 0;
}

std::size_t WebSocketRestorer::consume_head(std::string_view bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size() && head_.size() < head_size(head_)) head_ += bytes[taken++];
  if (head_.size() < head_size(head_)) return taken;
  broken_ = !read_head();
  if (broken_) return taken;
  items_.push_back({.whole = std::exchange(head_, {}), .due = in_control_ ? 0 : left_});
  if (in_control_ && left_ == 0) end_control();
  return taken;
}

// By itself: it may stand between two fragments.
void WebSocketRestorer::end_control() {
  items_.push_back({.whole = restorer_.restore(std::exchange(control_, {})), .due = 0});
  in_control_ = false;
}

std::size_t WebSocketRestorer::consume_payload(std::string_view bytes) {
  const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), left_));
  left_ -= taken;
  if (!in_control_) return ready_ += restorer_.feed(bytes.substr(0, taken), false), taken;
  control_ += bytes.substr(0, taken);
  if (left_ == 0) end_control();
  return taken;
}

std::string WebSocketRestorer::give() {
  std::string out;
  std::size_t used = 0;
  while (!items_.empty()) {
    Item& item = items_.front();
    out += std::exchange(item.whole, {});
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(item.due, ready_.size() - used));
    out.append(ready_, used, size);
    used += size;
    item.due -= size;
    if (item.due != 0) break;
    items_.pop_front();
  }
  ready_.erase(0, used);
  return out;
}

std::string WebSocketRestorer::feed(std::string_view bytes, bool last) {
  while (!bytes.empty() && !broken_) bytes.remove_prefix(left_ == 0 ? consume_head(bytes) : consume_payload(bytes));
  if (last || broken_) ready_ += restorer_.feed({}, true);
  return give();
}

std::string WebSocketRestorer::give_early() {
  ready_ += restorer_.give_early();
  return give();
}

void AnswerGuard::begin(const std::vector<const Credential*>& known) {
  end();
  if (!known.empty()) restorer_.emplace(known);
}

void AnswerGuard::begin_frames() {
  if (restorer_) frames_.emplace(*restorer_);
}

std::string AnswerGuard::filter(std::string_view bytes, bool last) {
  constexpr std::chrono::milliseconds kSilence{50};
  last = last && !cut_;
  std::string passed = frames_ ? frames_->feed(bytes, last) : restorer_->feed(bytes, last);
  const bool little = !cut_ && (frames_ ? frames_->holds_little() : restorer_->holds_little());
  due_ = little ? Clock::now() + kSilence : Clock::time_point::max();
  return passed;
}

std::string AnswerGuard::give_early() {
  if (std::exchange(due_, Clock::time_point::max()) == Clock::time_point::max()) return {};
  return frames_ ? frames_->give_early() : restorer_->give_early();
}

// Names are text as well. The status is a number.
void AnswerGuard::restore(HttpHead& head) const {
  if (!restorer_) return;
  head.phrase = restorer_->restore(head.phrase);
  for (HttpField& field : head.fields) field = {restorer_->restore(field.name), restorer_->restore(field.value)};
}

}  // namespace belljar::egress
