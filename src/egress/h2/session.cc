#include "egress/h2/session.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "egress/h2/fields.h"
#include "egress/http.h"

namespace belljar::egress::h2 {

CallbacksPtr make_callbacks() {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  return CallbacksPtr(callbacks);
}

OptionPtr make_options() {
  nghttp2_option* option = nullptr;
  nghttp2_option_new(&option);
  nghttp2_option_set_no_auto_window_update(option, 1);
  nghttp2_option_set_no_closed_streams(option, 1);
  return OptionPtr(option);
}

std::string take_frames(nghttp2_session* session, std::size_t most) {
  std::string frames;
  while (frames.size() < most) {
    const std::uint8_t* data = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session, &data);
    if (size <= 0) break;
    frames.append(reinterpret_cast<const char*>(data), static_cast<std::size_t>(size));
  }
  return frames;
}

int submit_settings(nghttp2_session* session, const nghttp2_settings_entry* entries, std::size_t count) {
  return nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, entries, count);
}

void FieldSection::add(std::string_view name, std::string_view value) {
  constexpr std::size_t kOverhead = 32;
  size_ += name.size() + value.size() + kOverhead;
  if (!too_large()) fields_.push_back({std::string(name), std::string(value)});
}

std::vector<nghttp2_nv> pointers_to(const Fields& fields) {
  const auto bytes = [](const std::string& text) {
    return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
  };
  std::vector<nghttp2_nv> pointers;
  pointers.reserve(fields.size());
  for (const HttpField& field : fields)
    pointers.push_back({bytes(field.name), bytes(field.value), field.name.size(), field.value.size(), NGHTTP2_NV_FLAG_NONE});
  return pointers;
}

ssize_t Outgoing::read(nghttp2_session* session, int id, std::uint8_t* buffer, std::size_t size, std::uint32_t* flags) {
  const std::size_t part = std::min(size, body.size());
  std::memcpy(buffer, body.data(), part);
  body.erase(0, part);
  if (!body.empty()) return static_cast<ssize_t>(part);
  if (!ended) return part == 0 ? static_cast<ssize_t>(NGHTTP2_ERR_DEFERRED) : static_cast<ssize_t>(part);
  *flags |= NGHTTP2_DATA_FLAG_EOF;
  if (!trailers.empty()) {
    *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    const auto pointers = pointers_to(trailers);
    nghttp2_submit_trailer(session, id, pointers.data(), pointers.size());
  }
  return static_cast<ssize_t>(part);
}

bool is_of_use(const nghttp2_frame_hd& frame) {
  return frame.type == NGHTTP2_HEADERS || frame.type == NGHTTP2_WINDOW_UPDATE || frame.type == NGHTTP2_RST_STREAM ||
         (frame.type == NGHTTP2_DATA && (frame.length != 0 || (frame.flags & NGHTTP2_FLAG_END_STREAM) != 0));
}

bool TokenBucket::spend() {
  const auto now = Clock::now();
  left_ = std::min(burst_, left_ + rate_ * std::chrono::duration<double>(now - last_).count());
  last_ = now;
  if (left_ < 1) return false;
  left_ -= 1;
  return true;
}

}  // namespace belljar::egress::h2
