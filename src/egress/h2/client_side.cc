// A client's HTTP/2: frames to the text of each stream's request, the text of its answer to frames.
//
// Flow control. A byte that a window lets in lies with us until somebody takes it, so a window is opened again only by what was
// taken, and each of its bytes has one place where it counts:
//
//   request   its stream's window (64 KiB), until the server took it: Stream::taken, given back by open_window(). The connection's
//             window is no bound: add_body() gives it back at once, or one stream that nobody takes would hold up all the others.
//   answer    Stream::held(), until the client took it: what the server's side wrote and nobody read, and what waits here for the
//             client's window. StreamEnd::room() says how much more may come; notify_server() says that there is room again.
//
// service() does for one stream what can be done, before frames are taken: it gives back what was taken of the request, ends a
// request whose answer is over, reads what is new of the answer, and lets it go on. What no window holds back has an allowance
// instead: frames that ask for nothing, resets, interim answers.
#include "egress/h2/client_side.h"

#include <nghttp2/nghttp2.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "egress/h2/fields.h"
#include "egress/h2/session.h"
#include "egress/http.h"
#include "egress/streams.h"

namespace belljar::egress::h2 {
namespace {

constexpr std::int32_t kConnectionWindow = 1 << 20;  // opened again at once: what holds a client back are its streams' windows

// One stream, and what of its answer is still to be sent.
struct OpenStream {
  std::shared_ptr<Stream> stream = std::make_shared<Stream>();
  FieldSection section;
  bool opened = false;  // its request's head was whole
  std::optional<HttpReader> answer;
  TokenBucket interim{kInterim, kInterimPerSecond};
  bool head_request = false, submitted = false, over = false;
  Outgoing outgoing;
  std::optional<TokenBucket::Clock::time_point> finished_at;  // the answer, before the request
  std::size_t held = 0;                                       // of the answer when frames were last taken, or before they were
};

// Of a stream's end: a client that wants it reset can have us do so instead (CVE-2025-8671).
bool is_clients_fault(std::uint32_t code) {
  return code == NGHTTP2_PROTOCOL_ERROR || code == NGHTTP2_FLOW_CONTROL_ERROR || code == NGHTTP2_STREAM_CLOSED ||
         code == NGHTTP2_FRAME_SIZE_ERROR;
}

class ClientSide final : public Streams {
 public:
  explicit ClientSide(const ClientLimits& limits)
      : resets_(limits.resets, limits.resets_per_second), idle_frames_(limits.idle_frames, limits.idle_frames_per_second) {
    const CallbacksPtr callbacks = make_callbacks();
    set_callbacks(callbacks.get());
    const OptionPtr options = make_options();
    nghttp2_session* raw = nullptr;
    if (nghttp2_session_server_new2(&raw, callbacks.get(), this, options.get()) != 0) {
      failed_ = true;
      return;
    }
    session_.reset(raw);
    const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits.streams},
                                               {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits.window},
                                               {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, kMaxHead}};
    failed_ = submit_settings(raw, settings, std::size(settings)) != 0 ||
              nghttp2_session_set_local_window_size(raw, NGHTTP2_FLAG_NONE, 0, kConnectionWindow) != 0;
  }
  ~ClientSide() override {
    for (auto& [id, open] : open_) leave(open);
  }
  ClientSide(const ClientSide&) = delete;
  ClientSide& operator=(const ClientSide&) = delete;

  void put(std::string_view plain) override {
    if (failed_ || plain.empty()) return;
    const auto taken = nghttp2_session_mem_recv(session_.get(), reinterpret_cast<const std::uint8_t*>(plain.data()), plain.size());
    if (taken < 0) failed_ = true;
  }
  std::string take(std::size_t most) override {
    if (failed_) return {};
    for (auto& [id, open] : open_) service(id, open);
    std::string frames = take_frames(session_.get(), most);
    for (auto& [id, open] : open_) notify_server(open);
    return frames;
  }
  std::vector<std::shared_ptr<Stream>> take_opened() override { return std::exchange(opened_, {}); }
  std::size_t take_malformed() override { return std::exchange(malformed_, 0); }
  std::size_t count() const override { return open_.size(); }
  bool reads_head() const override { return head_of_ != 0; }
  void end() override { terminate(NGHTTP2_NO_ERROR); }
  bool over() const override {
    return failed_ || (nghttp2_session_want_read(session_.get()) == 0 && nghttp2_session_want_write(session_.get()) == 0);
  }

 private:
  static ClientSide& of(void* self) { return *static_cast<ClientSide*>(self); }
  void set_callbacks(nghttp2_session_callbacks* callbacks);
  int begin_frame(const nghttp2_frame_hd& frame);
  int begin_fields(const nghttp2_frame& frame);
  int add_field(const nghttp2_frame& frame, std::string_view name, std::string_view value);
  int receive_frame(const nghttp2_frame& frame);
  int add_body(std::int32_t id, std::string_view bytes);
  void let_finish(std::int32_t id, OpenStream& open);
  void sent_frame(const nghttp2_frame& frame);
  void close(std::int32_t id, std::uint32_t code);
  void begin_request(OpenStream& open, bool whole);
  void end_request(std::int32_t id, OpenStream& open);
  void service(std::int32_t id, OpenStream& open);
  void open_window(std::int32_t id, OpenStream& open);
  static void notify_server(OpenStream& open);
  void read_answer(std::int32_t id, OpenStream& open);
  void send_head(std::int32_t id, OpenStream& open);
  void reset(std::int32_t id, OpenStream& open, std::uint32_t code);
  static void leave(OpenStream& open) {
    open.stream->gone = true;
    open.stream->tell_server();
  }
  void terminate(std::uint32_t code) {
    if (!failed_) nghttp2_session_terminate_session(session_.get(), code);
  }
  OpenStream* find(std::int32_t id) {
    const auto found = open_.find(id);
    return found == open_.end() ? nullptr : &found->second;
  }

  SessionPtr session_;
  std::map<std::int32_t, OpenStream> open_;
  std::vector<std::shared_ptr<Stream>> opened_;
  std::size_t malformed_ = 0;
  std::int32_t head_of_ = 0;  // the stream whose fields are not whole yet
  bool failed_ = false;
  TokenBucket resets_, idle_frames_;
};

void ClientSide::set_callbacks(nghttp2_session_callbacks* callbacks) {
  nghttp2_session_callbacks_set_on_begin_frame_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame_hd* frame, void* self) { return of(self).begin_frame(*frame); });
  nghttp2_session_callbacks_set_on_begin_headers_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* self) { return of(self).begin_fields(*frame); });
  nghttp2_session_callbacks_set_on_header_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                    const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* self) {
        return of(self).add_field(*frame, {reinterpret_cast<const char*>(name), name_size},
                                  {reinterpret_cast<const char*>(value), value_size});
      });
  // Without it the library passes over such a field, and somebody else could see it.
  nghttp2_session_callbacks_set_on_invalid_header_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame*, const std::uint8_t*, std::size_t, const std::uint8_t*, std::size_t,
                    std::uint8_t, void*) { return static_cast<int>(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE); });
  nghttp2_session_callbacks_set_on_frame_recv_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* self) { return of(self).receive_frame(*frame); });
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
      callbacks, [](nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* data, std::size_t size, void* self) {
        return of(self).add_body(id, {reinterpret_cast<const char*>(data), size});
      });
  nghttp2_session_callbacks_set_on_frame_send_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* self) { return of(self).sent_frame(*frame), 0; });
  nghttp2_session_callbacks_set_on_stream_close_callback(
      callbacks, [](nghttp2_session*, std::int32_t id, std::uint32_t code, void* self) { return of(self).close(id, code), 0; });
}

// --- what the client sends

int ClientSide::begin_frame(const nghttp2_frame_hd& frame) {
  const bool too_many = (!is_of_use(frame) && !idle_frames_.spend()) || (frame.type == NGHTTP2_RST_STREAM && !resets_.spend());
  if (too_many) terminate(NGHTTP2_ENHANCE_YOUR_CALM);
  return 0;
}

int ClientSide::begin_fields(const nghttp2_frame& frame) {
  if (frame.hd.type != NGHTTP2_HEADERS) return 0;
  head_of_ = frame.hd.stream_id;
  open_[frame.hd.stream_id].section.clear();
  return 0;
}

int ClientSide::add_field(const nghttp2_frame& frame, std::string_view name, std::string_view value) {
  if (OpenStream* const open = find(frame.hd.stream_id)) open->section.add(name, value);
  return 0;
}

int ClientSide::receive_frame(const nghttp2_frame& frame) {
  if (frame.hd.type == NGHTTP2_HEADERS) head_of_ = 0;
  OpenStream* const open = find(frame.hd.stream_id);
  if (open == nullptr) return 0;
  const bool whole = (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  if (frame.hd.type == NGHTTP2_HEADERS && !std::exchange(open->opened, true)) begin_request(*open, whole);
  else if (frame.hd.type == NGHTTP2_HEADERS) end_request(frame.hd.stream_id, *open);
  else if (frame.hd.type == NGHTTP2_DATA && whole) open->stream->request.end(), open->stream->tell_server();
  return 0;
}

void ClientSide::begin_request(OpenStream& open, bool whole) {
  HttpFault fault{431, "the head is longer than 64 KiB"};
  const auto head = open.section.too_large() ? std::nullopt : request_head(open.section.fields(), whole, fault);
  if (head) open.stream->request.begin(head->text, head->body);
  else open.stream->fault = std::move(fault);
  if (whole) open.stream->request.end();
  open.head_request = head && head->text.starts_with("HEAD ");
  open.section.clear();
  opened_.push_back(open.stream);
}

// With the fields after its body.
void ClientSide::end_request(std::int32_t id, OpenStream& open) {
  const auto lines = open.section.too_large() ? std::nullopt : trailer_lines(open.section.fields());
  open.section.clear();
  if (!lines) {
    ++malformed_;
    return reset(id, open, NGHTTP2_PROTOCOL_ERROR);
  }
  open.stream->request.end(*lines);
  open.stream->tell_server();
}

int ClientSide::add_body(std::int32_t id, std::string_view bytes) {
  nghttp2_session_consume_connection(session_.get(), bytes.size());
  OpenStream* const open = find(id);
  if (open == nullptr) return 0;
  if (open->over) return let_finish(id, *open), 0;
  open->stream->request.add(bytes);
  open->stream->tell_server();
  return 0;
}

void ClientSide::close(std::int32_t id, std::uint32_t code) {
  if (is_clients_fault(code) && !resets_.spend()) terminate(NGHTTP2_ENHANCE_YOUR_CALM);
  const auto found = open_.find(id);
  if (found == open_.end()) return;
  if (!found->second.opened) ++malformed_;
  if (head_of_ == id) head_of_ = 0;  // a head that is no HTTP ends its stream
  leave(found->second);
  open_.erase(found);
}

// --- what goes to it

// An answer that did not wait for its request's end: the rest need not come (RFC 9113 section 8.1). But clients take the reset for
// a failure when it overtakes what they are about to send, so what fits into the window may come for a moment.
void ClientSide::let_finish(std::int32_t id, OpenStream& open) {
  constexpr std::chrono::seconds kPatience{2};
  if (!open.finished_at || open.stream->request.ended()) return;
  const bool full = nghttp2_session_get_stream_local_window_size(session_.get(), id) <= 0;
  if (!full && TokenBucket::Clock::now() - *open.finished_at < kPatience) return;
  open.finished_at.reset();
  reset(id, open, NGHTTP2_NO_ERROR);
}

void ClientSide::sent_frame(const nghttp2_frame& frame) {
  const bool last =
      (frame.hd.type == NGHTTP2_DATA || frame.hd.type == NGHTTP2_HEADERS) && (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  OpenStream* const open = last ? find(frame.hd.stream_id) : nullptr;
  if (open == nullptr || open->stream->request.ended()) return;
  open->over = true;
  open->finished_at = TokenBucket::Clock::now();
  let_finish(frame.hd.stream_id, *open);
}

void ClientSide::reset(std::int32_t id, OpenStream& open, std::uint32_t code) {
  open.over = true;
  nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, id, code);
}

void ClientSide::service(std::int32_t id, OpenStream& open) {
  open.held = open.stream->held();
  open_window(id, open);
  if (open.over) return let_finish(id, open);
  read_answer(id, open);
  const bool has_frames = open.submitted && (!open.outgoing.body.empty() || open.outgoing.ended);
  if (has_frames && !open.over) nghttp2_session_resume_data(session_.get(), id);
}

void ClientSide::open_window(std::int32_t id, OpenStream& open) {
  const std::size_t taken = std::exchange(open.stream->taken, 0);
  if (taken != 0 && !open.over) nghttp2_session_consume_stream(session_.get(), id, taken);
}

// Who serves the stream, where the client has taken some of its answer.
void ClientSide::notify_server(OpenStream& open) {
  Stream& stream = *open.stream;
  stream.waiting = open.outgoing.body.size();
  const std::size_t held = stream.held();
  if (held < std::exchange(open.held, held)) stream.tell_server();
}

void ClientSide::read_answer(std::int32_t id, OpenStream& open) {
  Stream& stream = *open.stream;
  while (!stream.answer.empty() && !open.outgoing.ended && !stream.aborted) {
    if (!open.answer) open.answer.emplace(HttpReader::Kind::kResponse, open.head_request), open.answer->keep_body();
    const bool had_head = open.answer->head_done();
    const std::size_t taken = open.answer->feed(stream.answer);
    if (open.answer->fault()) return reset(id, open, NGHTTP2_INTERNAL_ERROR);
    stream.answer.erase(0, taken);
    open.outgoing.body += open.answer->take_body();
    open.outgoing.ended = open.answer->done();
    if (open.outgoing.ended) open.outgoing.trailers = trailer_fields(open.answer->trailers());
    if (!had_head && open.answer->head_done()) send_head(id, open);
    else if (taken == 0) break;
  }
  if (stream.aborted) return reset(id, open, stream.turned_away ? NGHTTP2_REFUSED_STREAM : NGHTTP2_INTERNAL_ERROR);
  if (!stream.answered || open.outgoing.ended) return;
  if (!open.answer || !open.answer->end()) return reset(id, open, NGHTTP2_INTERNAL_ERROR);
  open.outgoing.ended = true;
}

void ClientSide::send_head(std::int32_t id, OpenStream& open) {
  const HttpHead& head = open.answer->head();
  const Fields fields = answer_fields(head);
  const auto pointers = pointers_to(fields);
  int sent = 0;
  if (head.status < kFirstFinal && !open.interim.spend()) return reset(id, open, NGHTTP2_INTERNAL_ERROR);
  if (head.status < kFirstFinal) {
    sent = nghttp2_submit_headers(session_.get(), NGHTTP2_FLAG_NONE, id, nullptr, pointers.data(), pointers.size(), nullptr);
    open.answer.reset();
    open.outgoing.ended = false;
  } else {
    nghttp2_data_provider body{};
    body.source.ptr = &open;
    body.read_callback = [](nghttp2_session* session, std::int32_t stream, std::uint8_t* buffer, std::size_t size,
                            std::uint32_t* flags, nghttp2_data_source* source, void*) {
      return static_cast<OpenStream*>(source->ptr)->outgoing.read(session, stream, buffer, size, flags);
    };
    sent = nghttp2_submit_response(session_.get(), id, pointers.data(), pointers.size(), open.outgoing.ended ? nullptr : &body);
    open.submitted = !open.outgoing.ended;
  }
  if (sent != 0) reset(id, open, NGHTTP2_INTERNAL_ERROR);
}

}  // namespace

std::unique_ptr<Streams> make_streams(const ClientLimits& limits) { return std::make_unique<ClientSide>(limits); }

}  // namespace belljar::egress::h2
