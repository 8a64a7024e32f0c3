// HttpServer: who is served, and which message goes where.
//
// The protocol over HTTP: a client POSTs each message; the answer is one JSON text, or a stream of events
// (text/event-stream) that ends with it. A GET opens one more stream for what belongs to no request. A
// session is named by the header Mcp-Session-Id and belongs to the token that began it; to the holder of
// another token it does not exist.
//
// One thread runs the loop and owns everything here. Sessions work on threads of their own, and what they say
// is posted to the loop (asio::dispatch), so that deliver() decides in one place. A message goes to the
// stream of its request if that is still open, into the log if the client may come back for it, and otherwise
// to the client's GET or a short queue for it.
//
// What may take long is not done on the loop. Ending a session stops sandboxes, so it gets a thread (end),
// which is joined later (reap).
//
// Limits are for two kinds of clients. Whoever shows no token may fill the connections: then the oldest
// connection without a finished request head is closed for a newcomer. Clients with tokens may fill the
// sessions: each token has an equal share, and whoever is above its share makes room first (make_room).
#include "mcp/http.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <array>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/socket_base.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/format.h"
#include "base/random.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "mcp/event_log.h"
#include "mcp/http_rules.h"
#include "mcp/http_server.h"
#include "mcp/rpc.h"
#include "mcp/session.h"

namespace belljar::mcp {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::chrono::milliseconds kTick = std::chrono::seconds(5);
constexpr std::size_t kMostUndelivered = 256;
constexpr std::uint64_t kListener = 0;  // the number of the stream that a GET opens; those of POSTs begin with 1
// How long an answer that a client has lost can be fetched.
constexpr std::chrono::minutes kResumable{5};
// Before it, clients take an event without data for a broken message.
constexpr std::string_view kKnowsBareIds = "2025-11-25";

bool is_initialize(const Json& json) { return json.is_object() && json.value("method", Json()) == "initialize"; }

}  // namespace

HttpServer::~HttpServer() {
  for (ClosingSession& closing : closing_) closing.thread.join();
}

Result<void> HttpServer::listen() {
  const HttpAddress& wanted = options_.address;
  if (!wanted.loopback && options_.rules.tokens.empty())
    return Error(Code::kInvalidArgument, format("cannot listen at {} without a token", wanted.address))
        .reason("it is no address of loopback: whoever reaches it could run commands")
        .next("leave --http-no-token out, or listen at 127.0.0.1");
  error_code failed;
  const asio::ip::tcp::endpoint endpoint(asio::ip::make_address(wanted.address, failed), wanted.port);
  // NOLINTBEGIN(bugprone-unused-return-value): it is `failed` again
  if (!failed) acceptor_.open(endpoint.protocol(), failed);
  if (!failed) acceptor_.set_option(asio::socket_base::reuse_address(true), failed);
  if (!failed) acceptor_.bind(endpoint, failed);
  if (!failed) acceptor_.listen(asio::socket_base::max_listen_connections, failed);
  // NOLINTEND(bugprone-unused-return-value)
  if (failed)
    return Error(Code::kUnavailable, format("cannot listen at {}, port {}", wanted.address, wanted.port)).reason(failed.message());
  ::fcntl(acceptor_.native_handle(), F_SETFD, FD_CLOEXEC);
  options_.rules.port = acceptor_.local_endpoint().port();
  return {};
}

void HttpServer::watch_signals() {
  signals_->async_wait(asio::posix::stream_descriptor::wait_read, [this](error_code) { loop_.stop(); });
}

Result<void> HttpServer::serve() {
  BELLJAR_CHECK(listen());
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&wanted, number);
  const int signals = ::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) return Error(Code::kResourceExhausted, "cannot serve").sys(errno, "signalfd");
  signals_.emplace(loop_, signals);
  watch_signals();
  accept();
  tick();
  if (options_.ready) options_.ready(options_.rules.port);
  loop_.run();
  // Sessions end with nobody listening: what they still say is not sent.
  for (auto& [id, entry] : sessions_) entry.session->close();
  sessions_.clear();
  return {};
}

void HttpServer::accept() {
  acceptor_.async_accept([this](error_code failed, asio::ip::tcp::socket socket) {
    if (failed == asio::error::operation_aborted) return;
    if (failed) {  // no descriptors: one may become free
      retry_.expires_after(std::chrono::milliseconds(200));
      return retry_.async_wait([this](error_code stopped) {
        if (!stopped) accept();
      });
    }
    ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);  // Asio accepts without
    if (has_place_for_connection()) std::make_shared<HttpConnection>(*this, std::move(socket))->read();
    accept();
  });
}

// Who has no token must not keep those out who have one: of strangers the oldest makes room for whoever comes.
bool HttpServer::has_place_for_connection() {
  if (connections_ < options_.most_connections) return true;
  if (strangers_.empty()) return false;
  HttpConnection* const oldest = strangers_.front();
  strangers_.erase(strangers_.begin());
  oldest->close();
  return true;
}

void HttpServer::arrived(HttpConnection& connection) {
  ++connections_;
  strangers_.push_back(&connection);
}

void HttpServer::accepted(HttpConnection& connection) { std::erase(strangers_, &connection); }

void HttpServer::left(HttpConnection& connection) noexcept {
  --connections_;
  std::erase(strangers_, &connection);
}

void HttpServer::tick() {
  timer_.expires_after(std::min(kTick, options_.session_idle / 2 + std::chrono::milliseconds(1)));
  timer_.async_wait([this](error_code failed) {
    if (failed) return;
    reap();
    const auto now = Clock::now();
    for (auto at = sessions_.begin(); at != sessions_.end();) {
      const auto next = std::next(at);
      HttpSession& entry = at->second;
      forget_old(entry, now);
      for (auto& [number, stream] : entry.streams) {
        if (const auto connection = stream.connection.lock()) connection->keep_alive(now);
      }
      const auto listener = entry.listener.lock();
      if (listener) listener->keep_alive(now);
      if (listener || !entry.session->idle()) entry.used = now;
      if (now - entry.used >= options_.session_idle) end(at);
      at = next;
    }
    tick();
  });
}

void HttpServer::forget_old(HttpSession& entry, Clock::time_point now) {
  std::erase_if(entry.streams, [&](const auto& each) {
    const Stream& stream = each.second;
    const bool lost = stream.connection.expired();
    const bool forget =
        stream.over ? lost && (now - *stream.over >= kResumable || !entry.log.keeps(each.first)) : lost && !stream.resumable;
    if (forget) entry.log.forget(each.first);
    return forget;
  });
}

// To end a sandbox takes time, and others wait here.
void HttpServer::end(Sessions::iterator at) {
  HttpSession entry = std::move(at->second);
  sessions_.erase(at);
  if (const auto listener = entry.listener.lock()) listener->end_events();
  for (auto& [number, stream] : entry.streams) {
    if (const auto connection = stream.connection.lock()) connection->end_events();
  }
  reap();
  ClosingSession& closing = closing_.emplace_back();
  const std::shared_ptr<Session> session = std::move(entry.session);
  try {
    closing.thread = std::thread([&closing, session] {
      session->close();
      closing.done = true;
    });
  } catch (const std::system_error&) {  // no more threads
    closing_.pop_back();
    session->close();
  }
}

void HttpServer::reap() {
  for (auto at = closing_.begin(); at != closing_.end();) {
    const auto next = std::next(at);
    if (at->done) {
      at->thread.join();
      closing_.erase(at);
    }
    at = next;
  }
}

// The one that was used least lately goes, of those that do nothing; its client is told so and begins anew. Each token has an equal
// share of the places: who has used up its own makes room among its own sessions, and another one among those of whoever has more
// than its share. So nobody loses a session to another token while it has no more than its share.
bool HttpServer::make_room(std::size_t client) {
  if (sessions_.size() < options_.most_sessions) return true;
  std::map<std::size_t, std::size_t> held;
  for (const auto& [id, entry] : sessions_) ++held[entry.client];
  const std::size_t share =
      std::max<std::size_t>(1, options_.most_sessions / std::max<std::size_t>(1, options_.rules.tokens.size()));
  const bool own = held[client] >= share;
  auto oldest = sessions_.end();
  for (auto at = sessions_.begin(); at != sessions_.end(); ++at) {
    if (own ? at->second.client != client : held[at->second.client] <= share) continue;
    if (at->second.listener.lock() || !at->second.session->idle()) continue;
    if (oldest == sessions_.end() || at->second.used < oldest->second.used) oldest = at;
  }
  if (oldest == sessions_.end()) return false;
  end(oldest);
  return true;
}

void HttpServer::deliver(const std::string& session_id, const Outgoing& said) {
  const auto at = sessions_.find(session_id);
  if (at == sessions_.end()) return;
  HttpSession& entry = at->second;
  const auto known = entry.streams.find(said.stream);
  if (known != entry.streams.end()) {
    Stream& stream = known->second;
    const auto connection = stream.connection.lock();
    if (connection || stream.resumable) {
      HttpEvent event = said.line.empty() ? HttpEvent{} : entry.log.add(said.stream, said.line);
      if (connection) {
        connection->enqueue(std::move(event), said.last);
        stream.resumable = stream.resumable || connection->is_streaming();
      }
      if (said.last) stream.over = Clock::now();
      return;
    }
    if (said.last) entry.streams.erase(known);
  }
  // An answer whose client has gone away belongs nowhere else.
  if (said.last || said.line.empty()) return;
  HttpEvent event = entry.log.add(kListener, said.line);
  if (const auto listener = entry.listener.lock()) return listener->enqueue(std::move(event));
  entry.undelivered.push_back(std::move(event));
  if (entry.undelivered.size() > kMostUndelivered) entry.undelivered.pop_front();
}

void HttpServer::pass_to(HttpSession& entry, const std::shared_ptr<HttpConnection>& connection, const std::string& session_id,
                         std::string_view body) {
  const std::uint64_t number = ++serial_;
  entry.streams[number].connection = connection;
  connection->pass_to(*entry.session, number, session_id, body);
  if (!connection->is_streaming()) {  // answered as a whole
    entry.streams.erase(number);
    return entry.log.forget(number);
  }
  if (!entry.log.has_ids_of(number) && entry.session->protocol() >= kKnowsBareIds) connection->enqueue(entry.log.cursor(number));
  entry.streams[number].resumable = entry.log.has_ids_of(number);
}

void HttpServer::begin_session(const std::shared_ptr<HttpConnection>& connection, const HttpCall& call) {
  if (!make_room(call.client)) return connection->refuse({503, "Service Unavailable: too many sessions"});
  const std::string id = random_hex(24);
  if (id.empty()) return connection->refuse({500, "Internal Server Error: no randomness"});
  HttpSession& entry = sessions_[id];
  entry.used = Clock::now();
  entry.client = call.client;
  entry.session = std::make_unique<Session>(session_options_, [this, id](Outgoing said) {
    asio::dispatch(loop_, [this, id, said = std::move(said)] { deliver(id, said); });
  });
  pass_to(entry, connection, id, call.body);
  if (entry.session->protocol().empty()) end(sessions_.find(id));
}

// Whoever learnt a session's id (from a log, say) has nothing of it without the token of the client that made it.
HttpServer::Sessions::iterator HttpServer::find_session(const HttpCall& call) {
  const auto at = sessions_.find(call.session_id);
  return at != sessions_.end() && at->second.client == call.client ? at : sessions_.end();
}

void HttpServer::post(const std::shared_ptr<HttpConnection>& connection, const HttpCall& call) {
  const auto parsed = parse_text(call.body);
  if (const auto* wrong = std::get_if<RpcError>(&parsed))
    return connection->answer(400, to_line(make_error(*wrong)), "application/json", "");
  if (call.session_id.empty()) {
    if (is_initialize(std::get<Json>(parsed))) return begin_session(connection, call);
    return connection->refuse({400, "Bad Request: Mcp-Session-Id is missing, and this is no `initialize`"});
  }
  const auto at = find_session(call);
  if (at == sessions_.end()) return connection->refuse({404, "Not Found: there is no such session"});
  at->second.used = Clock::now();
  pass_to(at->second, connection, call.session_id, call.body);
}

void HttpServer::listen_to(HttpSession& entry, const std::shared_ptr<HttpConnection>& connection) {
  // The newest counts: of one that broke off, nothing may have been heard yet.
  if (const auto before = entry.listener.lock()) before->end_events();
  entry.listener = connection;
  connection->begin_events();
  if (entry.undelivered.empty() && entry.session->protocol() >= kKnowsBareIds) connection->enqueue(entry.log.cursor(kListener));
  for (HttpEvent& event : std::exchange(entry.undelivered, {})) connection->enqueue(std::move(event));
}

// Of that one stream what came after the event, and what is still to come.
void HttpServer::resume(HttpSession& entry, const std::shared_ptr<HttpConnection>& connection, std::string_view last_event) {
  auto rest = entry.log.after(last_event);
  const auto stream = rest ? entry.streams.find(rest->stream) : entry.streams.end();
  if (!rest || (rest->stream != kListener && stream == entry.streams.end()))
    return connection->refuse({400, "Bad Request: what came after this Last-Event-ID is not kept (any more)"});
  std::weak_ptr<HttpConnection>& slot = rest->stream == kListener ? entry.listener : stream->second.connection;
  if (const auto before = slot.lock()) before->close();  // lost, as the client says; a message goes out once
  slot = connection;
  if (rest->stream == kListener) entry.undelivered.clear();  // they are in the rest
  connection->begin_events();
  for (HttpEvent& event : rest->events) connection->enqueue(std::move(event));
  if (rest->stream != kListener && stream->second.over) connection->end_events();
}

void HttpServer::handle(const std::shared_ptr<HttpConnection>& connection, const HttpCall& call) {
  if (call.method == "POST") return post(connection, call);
  if (call.session_id.empty()) return connection->refuse({400, "Bad Request: Mcp-Session-Id is missing"});
  const auto at = find_session(call);
  if (at == sessions_.end()) return connection->refuse({404, "Not Found: there is no such session"});
  at->second.used = Clock::now();
  if (call.method == "GET" && !call.last_event.empty()) return resume(at->second, connection, call.last_event);
  if (call.method == "GET") return listen_to(at->second, connection);
  end(at);
  connection->answer(200, "", "", "");
}

Result<void> serve_http(const SessionOptions& session, HttpOptions options) {
  HttpServer server(session, std::move(options));
  return server.serve();
}

}  // namespace belljar::mcp
