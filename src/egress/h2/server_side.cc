// HTTP/2 with a server, under the face of a TLS stream that carries HTTP/1.1.
//
// The phases write a request as text and read an answer as text; whether the server chose h2 (ALPN) is known
// only after the handshake, and nothing above needs to know. One connection carries one request, as with
// HTTP/1.1.
//
// Flow control. An answer's window is opened again only by what the reader took (nghttp2_session_consume in
// open()), so `answer_` holds at most one window. The other way, room() tells how much of the request may
// still come before the server takes some. What no window bounds (settings, pings, window updates, interim
// answers) has a token bucket, since everything that arrives is read at once.
#include "egress/h2/server_side.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "egress/h2/fields.h"
#include "egress/h2/session.h"
#include "egress/http.h"
#include "egress/intercept.h"
#include "egress/streams.h"

namespace belljar::egress::h2 {
namespace {

constexpr std::int32_t kWindow = 512 << 10;       // bytes of an answer that nobody has taken: the next hop may be far
constexpr std::size_t kMostWaiting = 128U << 10;  // of a request, for a server that does not take it; a head fits
constexpr std::size_t kMostFrames = 256U << 10;   // given to TLS at once
constexpr std::size_t kPiece = 16U << 10;
// All that a server sends is read at once: what it costs us must have an end. One window update for each of our frames is usual.
constexpr double kIdleFrames = 5000, kIdleFramesPerSecond = 1000, kUpdates = 100'000, kUpdatesPerSecond = 50'000;

class ServerSide final : public SecureStream {
 public:
  explicit ServerSide(std::unique_ptr<SecureStream> tls) : tls_(std::move(tls)) {}

  void put(std::string_view wire) override { tls_->put(wire); }
  std::string take() override {
    if (session_ != nullptr && !broken_) {
      tls_->seal(take_frames(session_.get(), kMostFrames));
      check_end();
    }
    return tls_->take();
  }
  State handshake() override;
  bool open(std::string& plain, std::size_t most) override;
  void seal(std::string_view plain) override;
  std::size_t room() const override {
    return session_ == nullptr ? tls_->room() : kMostWaiting - std::min(kMostWaiting, outgoing_.body.size() + unread_.size());
  }
  bool reads_ahead() const override { return session_ != nullptr; }
  std::string protocol() const override { return tls_->protocol(); }
  bool ended() const override {
    return session_ == nullptr ? tls_->ended() : answer_.empty() && (answer_.ended() || tls_->ended());
  }
  bool broken() const override { return tls_->broken() || (broken_ && answer_.empty()); }
  void end() override {
    if (session_ == nullptr) tls_->end();
  }
  const TlsFault& fault() const override { return broken_ ? fault_ : tls_->fault(); }

 private:
  static ServerSide& of(void* self) { return *static_cast<ServerSide*>(self); }
  bool begin();
  void set_callbacks(nghttp2_session_callbacks* callbacks);
  void receive();
  void check_end();
  void send_head();
  int begin_frame(const nghttp2_frame_hd& frame);
  int receive_fields(const nghttp2_frame& frame);
  void receive_head(bool whole);
  void fail(std::string why) {
    if (!std::exchange(broken_, true)) fault_ = {"server", "http_protocol_error", "HTTP/2: " + std::move(why)};
  }

  std::unique_ptr<SecureStream> tls_;
  SessionPtr session_;
  std::string unread_;  // of the request's text
  HttpReader request_{HttpReader::Kind::kRequest};
  Outgoing outgoing_;
  std::int32_t stream_ = 0;  // of the request, once it is sent
  FieldSection section_;
  MessageText answer_;
  bool bodyless_ = false, has_head_ = false, broken_ = false;
  TokenBucket idle_frames_{kIdleFrames, kIdleFramesPerSecond}, updates_{kUpdates, kUpdatesPerSecond};
  TokenBucket interim_{kInterim, kInterimPerSecond};
  TlsFault fault_;
};

SecureStream::State ServerSide::handshake() {
  const State state = tls_->handshake();
  if (state != State::kReady || session_ != nullptr || tls_->protocol() != "h2") return state;
  return begin() ? state : (fail("it cannot begin"), State::kFailed);
}

bool ServerSide::begin() {
  const CallbacksPtr callbacks = make_callbacks();
  set_callbacks(callbacks.get());
  const OptionPtr options = make_options();
  nghttp2_session* raw = nullptr;
  if (nghttp2_session_client_new2(&raw, callbacks.get(), this, options.get()) != 0) return false;
  session_.reset(raw);
  request_.keep_body();
  request_.allow_trailers();
  const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                                             {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kWindow},
                                             {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, kMaxHead}};
  return submit_settings(raw, settings, std::size(settings)) == 0 &&
         nghttp2_session_set_local_window_size(raw, NGHTTP2_FLAG_NONE, 0, kWindow) == 0;
}

void ServerSide::set_callbacks(nghttp2_session_callbacks* callbacks) {
  nghttp2_session_callbacks_set_on_begin_frame_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame_hd* frame, void* self) { return of(self).begin_frame(*frame); });
  nghttp2_session_callbacks_set_on_begin_headers_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame*, void* self) { return of(self).section_.clear(), 0; });
  nghttp2_session_callbacks_set_on_header_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame*, const std::uint8_t* name, std::size_t name_size,
                    const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* self) {
        ServerSide& side = of(self);
        side.section_.add({reinterpret_cast<const char*>(name), name_size}, {reinterpret_cast<const char*>(value), value_size});
        if (!side.section_.too_large()) return 0;
        side.fail("the head is longer than 64 KiB");
        return static_cast<int>(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE);
      });
  nghttp2_session_callbacks_set_on_frame_recv_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* self) { return of(self).receive_fields(*frame); });
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
      callbacks, [](nghttp2_session*, std::uint8_t, std::int32_t, const std::uint8_t* data, std::size_t size, void* self) {
        of(self).answer_.add({reinterpret_cast<const char*>(data), size});
        return 0;
      });
  nghttp2_session_callbacks_set_on_stream_close_callback(
      callbacks, [](nghttp2_session*, std::int32_t, std::uint32_t code, void* self) {
        ServerSide& side = of(self);
        if (!side.answer_.ended()) side.fail(format("the stream was closed ({})", nghttp2_http2_strerror(code)));
        return 0;
      });
}

// --- the answer

int ServerSide::begin_frame(const nghttp2_frame_hd& frame) {
  const bool update = frame.type == NGHTTP2_WINDOW_UPDATE;
  if (update ? updates_.spend() : is_of_use(frame) || idle_frames_.spend()) return 0;
  fail("the server sends too much that is no answer");
  return NGHTTP2_ERR_CALLBACK_FAILURE;
}

int ServerSide::receive_fields(const nghttp2_frame& frame) {
  const bool whole = (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  if (frame.hd.stream_id == 0 || frame.hd.stream_id != stream_) return 0;
  if (frame.hd.type == NGHTTP2_DATA && whole) answer_.end();
  if (frame.hd.type != NGHTTP2_HEADERS) return 0;
  if (!has_head_) {
    receive_head(whole);
    return broken_ ? static_cast<int>(NGHTTP2_ERR_CALLBACK_FAILURE) : 0;  // what else comes is no answer
  }
  Fields trailers = section_.fields();
  std::erase_if(trailers, [](const HttpField& field) { return !may_trail(field); });
  answer_.end(*trailer_lines(trailers));
  return 0;
}

void ServerSide::receive_head(bool whole) {
  HttpFault fault;
  const auto head = answer_head(section_.fields(), whole, bodyless_, fault);
  if (!head) return fail(std::move(fault.reason));
  has_head_ = status_of(section_.fields()) >= kFirstFinal;
  if (!has_head_ && !interim_.spend()) return fail("too many interim answers");
  answer_.begin(head->text, head->body);
  if (whole) answer_.end();
}

// All that is there: what waits in `answer_` has the window as its bound.
void ServerSide::receive() {
  std::string frames;
  bool more = true;
  while (more && !broken_) {
    frames.clear();
    more = tls_->open(frames, kPiece);
    const auto taken =
        nghttp2_session_mem_recv(session_.get(), reinterpret_cast<const std::uint8_t*>(frames.data()), frames.size());
    if (taken < 0) fail(nghttp2_strerror(static_cast<int>(taken)));
  }
  check_end();
}

// After its GOAWAY, or ours that says what was wrong.
void ServerSide::check_end() {
  if (!answer_.ended() && nghttp2_session_want_read(session_.get()) == 0) fail("the connection ended before the answer");
}

bool ServerSide::open(std::string& plain, std::size_t most) {
  if (session_ == nullptr) return tls_->open(plain, most);
  receive();
  const std::size_t taken = answer_.take(plain, most);
  if (taken != 0) nghttp2_session_consume(session_.get(), stream_, taken);
  return !answer_.empty();
}

// --- the request

void ServerSide::seal(std::string_view plain) {
  if (session_ == nullptr) return tls_->seal(plain);
  unread_ += plain;
  while (!unread_.empty() && !broken_) {
    const std::size_t taken = request_.feed(unread_);
    if (request_.fault()) return fail(request_.fault()->reason);
    unread_.erase(0, taken);
    outgoing_.body += request_.take_body();
    outgoing_.ended = request_.done();
    if (outgoing_.ended) outgoing_.trailers = trailer_fields(request_.trailers());
    if (stream_ == 0 && request_.head_done()) send_head();
    if (taken == 0) break;
  }
  if (stream_ > 0 && (outgoing_.ended || !outgoing_.body.empty())) nghttp2_session_resume_data(session_.get(), stream_);
}

void ServerSide::send_head() {
  bodyless_ = request_.head().method == "HEAD";
  const Fields fields = request_fields(request_.head());
  const auto pointers = pointers_to(fields);
  nghttp2_data_provider body{};
  body.source.ptr = &outgoing_;
  body.read_callback = [](nghttp2_session* session, std::int32_t stream, std::uint8_t* buffer, std::size_t size,
                          std::uint32_t* flags, nghttp2_data_source* source,
                          void*) { return static_cast<Outgoing*>(source->ptr)->read(session, stream, buffer, size, flags); };
  stream_ =
      nghttp2_submit_request(session_.get(), nullptr, pointers.data(), pointers.size(), outgoing_.ended ? nullptr : &body, nullptr);
  if (stream_ < 0) fail("the request cannot be sent");
}

}  // namespace

std::unique_ptr<SecureStream> speak_to_server(std::unique_ptr<SecureStream> tls) {
  return std::make_unique<ServerSide>(std::move(tls));
}

}  // namespace belljar::egress::h2
