// HttpConnection: one request after the other on a socket, until one of them is answered by a stream of
// events.
//
// The head is judged before the body is read (on_header): a client without a token costs at most 16 KiB and
// no look at its JSON. A request whose end nobody can be sure of (a transfer coding that is not known,
// another version than HTTP/1.1) closes the connection after its answer, since the rest might otherwise be
// read as the next request (request smuggling, RFC 9112 section 11.2).
//
// Whether the answer is JSON or a stream is decided when the session has looked at the message (pass_to). If
// the answer is already there, as for a ping, it is sent as JSON; otherwise the response becomes a stream at
// once, since no one knows when the answer will come.
//
// Writing is strictly one operation at a time: `busy_` is set while one is under way, and pump() continues
// from its completion. Events that come meanwhile wait in `pending_`; a client that reads too slowly for too
// long is closed at kMostPending. Silence on a stream is broken by a comment line every kQuiet, so that
// proxies keep it open.
//
// At the end of a connection what the client is still sending is read and thrown away (drain). Closing a
// socket with unread input makes the kernel reset the connection, and the answer might be lost with it.
#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/bind_handler.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/chunk_encode.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/write.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "mcp/event_log.h"
#include "mcp/http_rules.h"
#include "mcp/http_server.h"
#include "mcp/rpc.h"
#include "mcp/session.h"

namespace belljar::mcp {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr std::uint32_t kLargestHeader = 16U << 10;
constexpr std::size_t kMostPending = std::size_t{64} << 20;  // of a client that reads more slowly than its tools speak
constexpr std::chrono::seconds kQuiet{20}, kDrain{5};

std::string event_of(const HttpEvent& event) {
  return format("id: {}\n{}data: {}\n\n", event.id, event.line.empty() ? "" : "event: message\n", event.line);
}

std::string text_of(beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

HttpConnection::HttpConnection(HttpServer& server, asio::ip::tcp::socket socket) : server_(server), stream_(std::move(socket)) {
  server_.arrived(*this);
}

HttpConnection::~HttpConnection() { server_.left(*this); }

void HttpConnection::read() {
  request_.emplace();
  request_->header_limit(kLargestHeader);
  request_->body_limit(boost::none);  // until we know whose it is
  pending_.clear();
  pending_bytes_ = 0;
  last_ = answered_ = false;
  session_id_.clear();
  stream_.expires_after(server_.options().request_time);
  http::async_read_header(stream_, buffer_, *request_,
                          [self = shared_from_this()](Error failed, std::size_t) { self->on_header(failed); });
}

HttpHead HttpConnection::head() const {
  const auto& message = request_->get();
  const auto field = [&](auto name) { return text_of(message[name]); };
  HttpHead head{.method = text_of(message.method_string()),
                .target = text_of(message.target()),
                .host = field(http::field::host),
                .origin = field(http::field::origin),
                .authorization = field(http::field::authorization),
                .accept = field(http::field::accept),
                .content_type = field(http::field::content_type),
                .protocol = field("MCP-Protocol-Version")};
  // What is said twice is read by each program in its own way: then it says nothing that lets anybody in.
  if (message.count(http::field::host) != 1) head.host.clear();
  if (message.count(http::field::authorization) > 1) head.authorization.clear();
  if (message.count(http::field::origin) > 1) head.origin = "several";
  const std::size_t codings = message.count(http::field::transfer_encoding);
  head.transfer_encoding = codings > 1 ? "several" : field(http::field::transfer_encoding);
  return head;
}

// Before the body: who has no token has nothing read of it.
void HttpConnection::on_header(Error failed) {
  if (failed) return on_failed(failed);
  const HttpHead head = this->head();
  closes_ = request_->get().version() != 11 || has_unknown_length(head);
  if (request_->get().version() != 11) return refuse({505, "HTTP Version Not Supported: speak HTTP/1.1"});
  if (const auto refusal = check_head(server_.options().rules, head)) return refuse(*refusal);
  server_.accepted(*this);
  const std::size_t most = server_.options().largest_body;
  if (request_->content_length().value_or(0) > most) return on_failed(http::error::body_limit);
  request_->body_limit(most);
  http::async_read(stream_, buffer_, *request_, [self = shared_from_this()](Error wrong, std::size_t) { self->on_body(wrong); });
}

void HttpConnection::on_body(Error failed) {
  if (failed) return on_failed(failed);
  const auto& message = request_->get();
  server_.handle(shared_from_this(), {.method = text_of(message.method_string()),
                                      .session_id = text_of(message["Mcp-Session-Id"]),
                                      .last_event = text_of(message["Last-Event-ID"]),
                                      .client = find_token(server_.options().rules, head().authorization).value_or(0),
                                      .body = message.body()});
}

void HttpConnection::on_failed(Error failed) {
  if (failed == http::error::body_limit)
    return refuse({413, format("Content Too Large: a message is longer than {} bytes", server_.options().largest_body)});
  if (failed == http::error::header_limit) return refuse({431, "Request Header Fields Too Large"});
  const bool gone = failed == http::error::end_of_stream || failed == http::error::partial_message ||
                    failed == beast::error::timeout ||
                    failed.category() != http::make_error_code(http::error::bad_method).category();
  if (gone) return close();
  refuse({400, "Bad Request: this is no HTTP"});
}

void HttpConnection::answer(unsigned status, std::string body, std::string_view type, const std::string& session) {
  const bool keep = !closes_ && request_ && request_->is_done() && request_->get().keep_alive();
  response_.emplace(static_cast<http::status>(status), 11);
  response_->set(http::field::server, "belljar");
  if (!type.empty()) response_->set(http::field::content_type, beast::string_view(type.data(), type.size()));
  if (!session.empty()) response_->set("Mcp-Session-Id", session);
  if (status == 401) response_->set(http::field::www_authenticate, "Bearer");
  if (status == 405) response_->set(http::field::allow, "GET, POST, DELETE");
  response_->keep_alive(keep);
  response_->body() = std::move(body);
  response_->prepare_payload();
  stream_.expires_after(server_.options().write_time);
  http::async_write(stream_, *response_, [self = shared_from_this(), keep](Error failed, std::size_t) {
    if (failed) return self->close();
    if (keep) return self->read();
    // NOLINTNEXTLINE(bugprone-unused-return-value): whoever has gone is told nothing
    self->stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, failed);
    self->stream_.expires_after(kDrain);
    self->drain(2 * self->server_.options().largest_body);
  });
}

// What the client is still sending is thrown away: to close on it would reset the connection, and the answer with it.
void HttpConnection::drain(std::size_t most) {
  buffer_.clear();
  stream_.async_read_some(buffer_.prepare(64U << 10), [self = shared_from_this(), most](Error failed, std::size_t got) {
    if (failed || got >= most) return self->close();
    self->drain(most - got);
  });
}

void HttpConnection::refuse(const HttpRefusal& refusal) {
  // Codes of the server's own; which, nothing depends on.
  answer(refusal.status, to_line(make_error({kServerBusy, refusal.reason})), "application/json", "");
}

// What is answered at once is one JSON text; the rest is a stream of events, in which the answer is the last.
void HttpConnection::pass_to(Session& session, std::uint64_t stream, const std::string& id, std::string_view body) {
  session_id_ = id;
  session.receive(body, stream);
  if (!last_) return begin_events();
  if (!answered_) return answer(202, "", "", id);  // a notification
  if (pending_.size() == 1) return answer(200, std::move(pending_.front().line), "application/json", id);
  begin_events();
}

void HttpConnection::enqueue(HttpEvent event, bool last) {
  last_ = last_ || last;
  answered_ = answered_ || (last && !event.line.empty());
  if (!event.id.empty()) {
    pending_bytes_ += event.line.size();
    pending_.push_back(std::move(event));
  }
  if (pending_bytes_ > kMostPending) return close();
  if (streaming_) pump();
}

void HttpConnection::begin_events() {
  events_.emplace(http::status::ok, 11);
  events_->set(http::field::server, "belljar");
  events_->set(http::field::content_type, "text/event-stream");
  events_->set(http::field::cache_control, "no-store");
  if (!session_id_.empty()) events_->set("Mcp-Session-Id", session_id_);
  events_->chunked(true);
  events_->keep_alive(false);
  streaming_ = true;
  watch();
  pump();
}

void HttpConnection::end_events() {
  last_ = true;
  if (streaming_) pump();
}

// Reads what nobody sends, to hear the client leave.
void HttpConnection::watch() {
  stream_.expires_never();
  stream_.async_read_some(buffer_.prepare(512), [self = shared_from_this()](Error failed, std::size_t) {
    if (failed || self->ended_) return self->close();
    self->watch();
  });
}

void HttpConnection::pump() {
  if (busy_ || ended_) return;
  const auto next = [self = shared_from_this()](Error failed, std::size_t) {
    self->busy_ = false;
    if (failed) return self->close();
    self->pump();
  };
  busy_ = true;
  last_write_ = std::chrono::steady_clock::now();
  if (!head_sent_) {
    head_sent_ = true;
    events_head_.emplace(*events_);
    stream_.expires_after(server_.options().write_time);
    return http::async_write_header(stream_, *events_head_, next);
  }
  if (!pending_.empty()) {
    pending_bytes_ -= std::min(pending_bytes_, pending_.front().line.size());
    writing_ = event_of(pending_.front());
    pending_.pop_front();
    stream_.expires_after(server_.options().write_time);
    return asio::async_write(stream_, http::make_chunk(asio::buffer(writing_)), next);
  }
  if (!last_) {
    busy_ = false;
    return;
  }
  stream_.expires_after(server_.options().write_time);
  asio::async_write(stream_, http::make_chunk_last(), [self = shared_from_this()](Error, std::size_t) { self->close(); });
}

void HttpConnection::keep_alive(std::chrono::steady_clock::time_point now) {
  if (!streaming_ || !head_sent_ || busy_ || ended_ || now - last_write_ < kQuiet) return;
  busy_ = true;
  last_write_ = now;
  writing_ = ":\n\n";
  stream_.expires_after(server_.options().write_time);
  asio::async_write(stream_, http::make_chunk(asio::buffer(writing_)), [self = shared_from_this()](Error failed, std::size_t) {
    self->busy_ = false;
    if (failed) return self->close();
    self->pump();
  });
}

void HttpConnection::close() {
  if (ended_) return;
  ended_ = true;
  Error ignored;
  // NOLINTNEXTLINE(bugprone-unused-return-value): whoever has gone is told nothing
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
  stream_.close();
}

}  // namespace belljar::mcp
