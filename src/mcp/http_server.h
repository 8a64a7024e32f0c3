// Parts of the HTTP transport that know each other. One thread runs all of it; sessions speak from theirs, and are heard in turn.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "belljar/result.h"
#include "mcp/event_log.h"
#include "mcp/http.h"
#include "mcp/session.h"

namespace belljar::mcp {

class HttpServer;

struct HttpCall {
  std::string method, session_id, last_event;  // empty: absent
  std::size_t client = 0;                      // which of HttpRules::tokens it has
  std::string_view body;
};

// One connection: a request after the other, until one of them is answered by a stream of events.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(HttpServer& server, boost::asio::ip::tcp::socket socket);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  void read();
  // A message for the request (or the GET) in hand. `last`: nothing more belongs to it.
  void enqueue(HttpEvent event, bool last = false);
  // Answered by events, and not by one JSON text.
  bool is_streaming() const noexcept { return streaming_; }
  // Answers a GET: events come as long as the client listens.
  void begin_events();
  void end_events();
  // A comment, should nothing have been sent for a while: proxies and the dead are found out by it.
  void keep_alive(std::chrono::steady_clock::time_point now);
  void close();
  void answer(unsigned status, std::string body, std::string_view type, const std::string& session);
  // As a JSON-RPC error without an id.
  void refuse(const HttpRefusal& refusal);
  void pass_to(Session& session, std::uint64_t stream, const std::string& id, std::string_view body);

 private:
  using Error = boost::beast::error_code;
  void on_header(Error failed);
  void on_body(Error failed);
  void on_failed(Error failed);
  void watch();
  void pump();
  void drain(std::size_t most);
  HttpHead head() const;

  HttpServer& server_;
  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> request_;
  std::optional<boost::beast::http::response<boost::beast::http::string_body>> response_;
  std::optional<boost::beast::http::response<boost::beast::http::empty_body>> events_;
  std::optional<boost::beast::http::response_serializer<boost::beast::http::empty_body>> events_head_;
  std::string session_id_;  // of the exchange in hand
  std::deque<HttpEvent> pending_;
  std::size_t pending_bytes_ = 0;
  std::string writing_;
  bool closes_ = false;  // after the answer: nobody knows where the next request begins
  bool streaming_ = false, head_sent_ = false, busy_ = false, last_ = false, answered_ = false, ended_ = false;
  std::chrono::steady_clock::time_point last_write_;
};

class HttpServer {
 public:
  HttpServer(const SessionOptions& session, HttpOptions options) : session_options_(session), options_(std::move(options)) {}
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  Result<void> serve();

  const HttpOptions& options() const noexcept { return options_; }
  void arrived(HttpConnection& connection);
  // The head of a request was fine: its client is known.
  void accepted(HttpConnection& connection);
  void left(HttpConnection& connection) noexcept;
  // A request whose headers and token are fine.
  void handle(const std::shared_ptr<HttpConnection>& connection, const HttpCall& call);

 private:
  using Clock = std::chrono::steady_clock;
  // A POST that waits for its answer, or has it and may be asked for it again.
  struct Stream {
    std::weak_ptr<HttpConnection> connection;
    bool resumable = false;                 // the client has an id of it
    std::optional<Clock::time_point> over;  // since when it has its answer
  };
  struct HttpSession {
    std::size_t client = 0;  // whose token began it; to others it does not exist
    std::unique_ptr<Session> session;
    std::map<std::uint64_t, Stream> streams;
    std::weak_ptr<HttpConnection> listener;  // the GET
    std::deque<HttpEvent> undelivered;       // of no stream, while nobody listens
    EventLog log;
    Clock::time_point used;
  };
  struct ClosingSession {
    std::thread thread;
    std::atomic<bool> done{false};
  };
  using Sessions = std::map<std::string, HttpSession>;

  Result<void> listen();
  void accept();
  void watch_signals();
  void tick();
  void reap();
  bool make_room(std::size_t client);
  bool has_place_for_connection();
  void post(const std::shared_ptr<HttpConnection>& connection, const HttpCall& call);
  void begin_session(const std::shared_ptr<HttpConnection>& connection, const HttpCall& call);
  Sessions::iterator find_session(const HttpCall& call);
  void pass_to(HttpSession& entry, const std::shared_ptr<HttpConnection>& connection, const std::string& session_id,
               std::string_view body);
  void listen_to(HttpSession& entry, const std::shared_ptr<HttpConnection>& connection);
  void resume(HttpSession& entry, const std::shared_ptr<HttpConnection>& connection, std::string_view last_event);
  void forget_old(HttpSession& entry, Clock::time_point now);
  void deliver(const std::string& session_id, const Outgoing& said);
  void end(Sessions::iterator at);

  const SessionOptions session_options_;
  HttpOptions options_;
  std::uint64_t serial_ = 0;
  // Before the loop, whose end lets the last of them go.
  std::size_t connections_ = 0;
  std::vector<HttpConnection*> strangers_;  // those of whom no head was fine yet, oldest first
  boost::asio::io_context loop_{1};
  boost::asio::ip::tcp::acceptor acceptor_{loop_};
  boost::asio::steady_timer timer_{loop_}, retry_{loop_};
  std::optional<boost::asio::posix::stream_descriptor> signals_;
  Sessions sessions_;
  std::list<ClosingSession> closing_;  // sessions on their way out
};

}  // namespace belljar::mcp
