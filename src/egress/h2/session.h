// Owners of what libnghttp2 makes, and what both sides ask of it. Included by the files of this folder only.
#pragma once

#include <nghttp2/nghttp2.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/free_with.h"
#include "egress/h2/fields.h"

namespace belljar::egress::h2 {

using SessionPtr = std::unique_ptr<nghttp2_session, FreeWith<nghttp2_session_del>>;
using CallbacksPtr = std::unique_ptr<nghttp2_session_callbacks, FreeWith<nghttp2_session_callbacks_del>>;
using OptionPtr = std::unique_ptr<nghttp2_option, FreeWith<nghttp2_option_del>>;

CallbacksPtr make_callbacks();
// Windows are opened by what was passed on, not by what came: bytes that nobody takes are no reason for more.
OptionPtr make_options();

// The frames that wait, about `most` bytes.
std::string take_frames(nghttp2_session* session, std::size_t most);

int submit_settings(nghttp2_session* session, const nghttp2_settings_entry* entries, std::size_t count);

// A field section as it arrives, with a bound (as SETTINGS_MAX_HEADER_LIST_SIZE counts, RFC 9113 section 6.5.2).
class FieldSection {
 public:
  void clear() { fields_.clear(), size_ = 0; }
  void add(std::string_view name, std::string_view value);
  bool too_large() const noexcept { return size_ > kMaxHead; }
  const Fields& fields() const noexcept { return fields_; }

 private:
  Fields fields_;
  std::size_t size_ = 0;
};

// For calls that take fields: points into them.
std::vector<nghttp2_nv> pointers_to(const Fields& fields);

// A body that waits for the peer's window.
struct Outgoing {
  std::string body;
  bool ended = false;
  Fields trailers;
  // As nghttp2_data_source_read_callback.
  ssize_t read(nghttp2_session* session, int id, std::uint8_t* buffer, std::size_t size, std::uint32_t* flags);
};

// How many 1xx may come before one answer: no window holds them back.
constexpr double kInterim = 16, kInterimPerSecond = 1;

// Whether a frame asks for something, or brings some of it. One that does not costs its sender nothing.
bool is_of_use(const nghttp2_frame_hd& frame);

// How often something may happen: `burst` at once, then `per_second`.
class TokenBucket {
 public:
  using Clock = std::chrono::steady_clock;
  TokenBucket(double burst, double per_second) : burst_(burst), rate_(per_second), left_(burst) {}
  bool spend();

 private:
  double burst_, rate_, left_;
  Clock::time_point last_ = Clock::now();
};

}  // namespace belljar::egress::h2
