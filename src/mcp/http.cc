// HttpServer: who is served, and which message goes where.
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

#include "base/format.h"
#include "base/random.h"
#include "belljar/error.h"
#include "belljar/result.h"
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

bool is_initialize(const Json& json) { return json.is_object() && json.value("method", Json()) == "initialize"; }

}  // namespace

HttpServer::~HttpServer() {
  for (Ending& ending : endings_) ending.thread.join();
}

Result<void> HttpServer::listen() {
  const HttpAddress& wanted = options_.address;
  if (!wanted.loopback && options_.rules.token.empty())
    return Error(Code::kInvalidArgument, format("cannot listen at {} without a token", wanted.address))
        .reason("it is no address of loopback: whoever reaches it could run commands")
        .next("leave --http-no-token out, or listen at 127.0.0.1");
  error_code failed;
  const asio::ip::tcp::endpoint place(asio::ip::make_address(wanted.address, failed), wanted.port);
  if (!failed) acceptor_.open(place.protocol(), failed);
  if (!failed) acceptor_.set_option(asio::socket_base::reuse_address(true), failed);
  if (!failed) acceptor_.bind(place, failed);
  if (!failed) acceptor_.listen(asio::socket_base::max_listen_connections, failed);
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
  for (auto& [id, served] : sessions_) served.session->close();
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
    if (connections_ < options_.most_connections) std::make_shared<HttpConnection>(*this, std::move(socket))->read();
    accept();
  });
}

void HttpServer::tick() {
  timer_.expires_after(std::min(kTick, options_.session_idle / 2 + std::chrono::milliseconds(1)));
  timer_.async_wait([this](error_code failed) {
    if (failed) return;
    reap();
    const auto now = Clock::now();
    for (auto at = sessions_.begin(); at != sessions_.end();) {
      const auto next = std::next(at);
      Served& served = at->second;
      std::erase_if(served.streams, [](const auto& each) { return each.second.expired(); });
      for (auto& [stream, waiting] : served.streams) {
        if (const auto connection = waiting.lock()) connection->keep_alive(now);
      }
      const auto listener = served.listener.lock();
      if (listener) listener->keep_alive(now);
      if (listener || !served.session->idle()) served.used = now;
      if (now - served.used >= options_.session_idle) end(at);
      at = next;
    }
    tick();
  });
}

// To end a sandbox takes time, and others wait here.
void HttpServer::end(Sessions::iterator at) {
  Served served = std::move(at->second);
  sessions_.erase(at);
  if (const auto listener = served.listener.lock()) listener->end_events();
  for (auto& [stream, waiting] : served.streams) {
    if (const auto connection = waiting.lock()) connection->end_events();
  }
  reap();
  Ending& ending = endings_.emplace_back();
  const std::shared_ptr<Session> session = std::move(served.session);
  try {
    ending.thread = std::thread([&ending, session] {
      session->close();
      ending.done = true;
    });
  } catch (const std::system_error&) {  // no more threads
    endings_.pop_back();
    session->close();
  }
}

void HttpServer::reap() {
  for (auto at = endings_.begin(); at != endings_.end();) {
    const auto next = std::next(at);
    if (at->done) {
      at->thread.join();
      endings_.erase(at);
    }
    at = next;
  }
}

// The one that was used least lately goes, of those that do nothing; its client is told so and begins anew.
bool HttpServer::make_room() {
  if (sessions_.size() < options_.most_sessions) return true;
  auto oldest = sessions_.end();
  for (auto at = sessions_.begin(); at != sessions_.end(); ++at) {
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
  Served& served = at->second;
  const auto stream = served.streams.find(said.stream);
  if (stream != served.streams.end()) {
    const auto connection = stream->second.lock();
    if (said.last) served.streams.erase(stream);
    if (connection) connection->take(said);
    if (connection || said.last) return;
  }
  // An answer whose client has gone away belongs nowhere else.
  if (said.last || said.line.empty()) return;
  if (const auto listener = served.listener.lock()) return listener->take({said.line});
  served.undelivered.push_back(said.line);
  if (served.undelivered.size() > kMostUndelivered) served.undelivered.pop_front();
}

void HttpServer::begin_session(const std::shared_ptr<HttpConnection>& connection, std::string_view body) {
  if (!make_room()) return connection->refuse({503, "Service Unavailable: too many sessions"});
  const std::string id = random_hex(24);
  if (id.empty()) return connection->refuse({500, "Internal Server Error: no randomness"});
  Served& served = sessions_[id];
  served.used = Clock::now();
  served.session = std::make_unique<Session>(session_options_, [this, id](Outgoing said) {
    asio::dispatch(loop_, [this, id, said = std::move(said)] { deliver(id, said); });
  });
  const std::uint64_t stream = ++serial_;
  served.streams[stream] = connection;
  connection->hand_to(*served.session, stream, id, body);
  if (served.session->protocol().empty()) end(sessions_.find(id));
}

void HttpServer::post(const std::shared_ptr<HttpConnection>& connection, const std::string& session_id, std::string_view body) {
  const auto parsed = parse_text(body);
  if (const auto* wrong = std::get_if<RpcError>(&parsed))
    return connection->answer(400, to_line(make_error(*wrong)), "application/json", "");
  if (session_id.empty()) {
    if (is_initialize(std::get<Json>(parsed))) return begin_session(connection, body);
    return connection->refuse({400, "Bad Request: Mcp-Session-Id is missing, and this is no `initialize`"});
  }
  const auto at = sessions_.find(session_id);
  if (at == sessions_.end()) return connection->refuse({404, "Not Found: there is no such session"});
  at->second.used = Clock::now();
  const std::uint64_t stream = ++serial_;
  at->second.streams[stream] = connection;
  connection->hand_to(*at->second.session, stream, session_id, body);
}

void HttpServer::listen_to(Served& served, const std::shared_ptr<HttpConnection>& connection) {
  // The newest counts: of one that broke off, nothing may have been heard yet.
  if (const auto before = served.listener.lock()) before->end_events();
  served.listener = connection;
  connection->begin_events();
  for (std::string& line : std::exchange(served.undelivered, {})) connection->take({std::move(line)});
}

void HttpServer::handle(const std::shared_ptr<HttpConnection>& connection, std::string_view method, const std::string& session_id,
                        std::string_view body) {
  if (method == "POST") return post(connection, session_id, body);
  if (session_id.empty()) return connection->refuse({400, "Bad Request: Mcp-Session-Id is missing"});
  const auto at = sessions_.find(session_id);
  if (at == sessions_.end()) return connection->refuse({404, "Not Found: there is no such session"});
  at->second.used = Clock::now();
  if (method == "GET") return listen_to(at->second, connection);
  end(at);
  connection->answer(200, "", "", "");
}

Result<void> serve_http(const SessionOptions& session, HttpOptions options) {
  HttpServer server(session, std::move(options));
  return server.serve();
}

}  // namespace belljar::mcp
