#include "egress/streams.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"

namespace belljar::egress {

void MessageText::begin(std::string_view head, Body body) {
  head_ += head;
  kind_ = body;
}

void MessageText::add(std::string_view bytes) {
  if (kind_ != Body::kNone) body_ += bytes;
}

void MessageText::end(std::string_view trailers) {
  ended_ = true;
  if (kind_ == Body::kChunked) tail_ = format("0\r\n{}\r\n", trailers);
}

std::size_t MessageText::take(std::string& text, std::size_t most) {
  if (text.size() >= most) return 0;
  text += std::exchange(head_, {});
  const std::size_t size = std::min(body_.size(), most - std::min(most, text.size()));
  if (size != 0) {
    if (kind_ == Body::kChunked) text += format("{:x}\r\n", size);
    text.append(body_, 0, size);
    if (kind_ == Body::kChunked) text += "\r\n";
    body_.erase(0, size);
  }
  if (ended_ && body_.empty()) text += std::exchange(tail_, {});
  return size;
}

StreamEnd::~StreamEnd() {
  if (!stream_->answered) abort();
}

bool StreamEnd::open(std::string& plain, std::size_t most) {
  const std::size_t taken = stream_->request.take(plain, most);
  stream_->taken += taken;
  if (taken != 0) stream_->tell_carrier();
  return !stream_->request.empty();
}

void StreamEnd::seal(std::string_view plain) {
  stream_->answer += plain;
  stream_->tell_carrier();
}

std::size_t StreamEnd::room() const { return Stream::kMostWaiting - std::min(Stream::kMostWaiting, stream_->held()); }

void StreamEnd::end() {
  stream_->answered = true;
  stream_->tell_carrier();
}

void StreamEnd::abort() {
  stream_->aborted = stream_->answered = true;
  stream_->tell_carrier();
}

}  // namespace belljar::egress
