// HTTP/1.1 over a connection that has a deadline and a cancel token (connection.h), with Beast for the
// messages.
//
// One connection serves one request ("Connection: close"). A connection that is kept would have to be checked
// before each use, for the engine may have closed it.
//
// Attach turns the connection into a raw stream (RFC 9110, section 7.8, Upgrade). What the parser has read
// beyond the head belongs to that stream already and is handed on as `early`; dropped, the first bytes of pid 1
// would be missing.
//
// The limit of the body is counted here and not by Beast, since the stream of a pull has no end that is known
// before and is not stored.
#include "backend/container/http.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "backend/container/address.h"
#include "backend/container/connection.h"
#include "base/ascii.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::backend::container {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr std::uint64_t kLargestBody = 64U << 20;
constexpr std::uint32_t kLargestHeader = 64U << 10;

// What Beast reads from and writes to (SyncReadStream, SyncWriteStream), with our deadline.
class Stream {
 public:
  Stream(Connection& connection, Connection::Deadline deadline) : connection_(connection), deadline_(deadline) {}
  void set_deadline(Connection::Deadline deadline) { deadline_ = deadline; }

  template <class Buffers>
  std::size_t read_some(const Buffers& buffers, error_code& failed) {
    for (auto at = asio::buffer_sequence_begin(buffers); at != asio::buffer_sequence_end(buffers); ++at) {
      const asio::mutable_buffer buffer = *at;
      if (buffer.size() == 0) continue;
      const long got = connection_.read(static_cast<char*>(buffer.data()), buffer.size(), deadline_);
      if (got > 0) return static_cast<std::size_t>(got);
      failed = got == 0 ? error_code(asio::error::eof) : error_code(static_cast<int>(-got), boost::system::system_category());
      return 0;
    }
    return 0;
  }
  template <class Buffers>
  std::size_t read_some(const Buffers& buffers) {
    error_code failed;
    const std::size_t got = read_some(buffers, failed);
    if (failed) throw boost::system::system_error(failed);
    return got;
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& buffers, error_code& failed) {
    for (auto at = asio::buffer_sequence_begin(buffers); at != asio::buffer_sequence_end(buffers); ++at) {
      const asio::const_buffer buffer = *at;
      if (buffer.size() == 0) continue;
      const long wrote = connection_.write(static_cast<const char*>(buffer.data()), buffer.size(), deadline_);
      if (wrote >= 0) return static_cast<std::size_t>(wrote);
      failed = error_code(static_cast<int>(-wrote), boost::system::system_category());
      return 0;
    }
    return 0;
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& buffers) {
    error_code failed;
    const std::size_t wrote = write_some(buffers, failed);
    if (failed) throw boost::system::system_error(failed);
    return wrote;
  }

 private:
  Connection& connection_;
  Connection::Deadline deadline_;
};

Error failure(const Request& request, const error_code& failed, const Connection& connection) {
  const std::string what =
      format("the container engine did not finish {}", quoted(request.target.substr(0, request.target.find('?'))));
  if (failed == error_code(ETIMEDOUT, boost::system::system_category()))
    return Error(Code::kDeadlineExceeded, what)
        .reason(format("no answer for {} s", request.patience.count() / 1000))
        .next("look at the engine's log; restart it if it hangs");
  if (failed == error_code(ECANCELED, boost::system::system_category()))
    return Error(Code::kCanceled, what).reason("it was cancelled meanwhile");
  if (const std::string why = connection.why(); !why.empty())
    return Error(Code::kUnauthenticated, what)
        .reason("TLS: " + why)
        .next("check our cert.pem and key.pem in DOCKER_CERT_PATH: the engine must know who signed them");
  return Error(
             failed == http::error::end_of_stream || failed == error_code(asio::error::eof) ? Code::kUnavailable : Code::kDataLoss,
             what)
      .reason(failed == http::error::end_of_stream || failed == http::error::partial_message ||
                      failed == error_code(asio::error::eof)
                  ? "it closed the connection in the middle"
                  : failed.message())
      .next("look at the engine's log: it may have been restarted, or be no Docker Engine API at all");
}

http::request<http::string_body> make(const Request& request) {
  const http::verb verb = request.method == Method::kGet    ? http::verb::get
                          : request.method == Method::kPost ? http::verb::post
                                                            : http::verb::delete_;
  http::request<http::string_body> message(verb, request.target, 11);
  message.set(http::field::host, "engine");
  message.set(http::field::user_agent, "belljar");
  for (const auto& [name, value] : request.headers) message.set(name, value);
  if (!request.json.empty()) message.set(http::field::content_type, "application/json");
  message.body() = request.json;
  message.prepare_payload();
  return message;
}

template <class Header>
Reply reply_of(const Header& header) {
  Reply reply;
  reply.status = header.result_int();
  for (const auto& field : header) {
    reply.headers.emplace(lower_case(field.name_string()), std::string(field.value()));
  }
  return reply;
}

constexpr bool is_success(unsigned status) { return status >= 200 && status < 300; }

// The body of an answer whose header was read, to `sink`. Beast's own limit is off: the caller of fetch has one.
template <class Parser, class Sink>
error_code read_body(Stream& stream, boost::beast::flat_buffer& buffer, Parser& parser, const Request& request, Sink sink) {
  char piece[16U << 10];
  error_code failed;
  while (!parser.is_done()) {
    parser.get().body().data = piece;
    parser.get().body().size = sizeof piece;
    if (request.on_body) stream.set_deadline(Connection::Clock::now() + request.patience);
    http::read_some(stream, buffer, parser, failed);
    if (failed == http::error::need_buffer) failed = {};
    if (failed) return failed;
    const std::size_t size = sizeof piece - parser.get().body().size;
    if (size > 0 && !sink(std::string_view(piece, size))) return error_code(EMSGSIZE, boost::system::system_category());
  }
  return {};
}

}  // namespace

Result<Reply> fetch(const Address& address, const Request& request) {
  const Connection::Deadline deadline = Connection::Clock::now() + request.patience;
  Connection connection = BELLJAR_TRY(Connection::open(address, deadline));
  connection.set_cancel(request.cancel);
  Stream stream(connection, deadline);
  http::request<http::string_body> message = make(request);
  message.set(http::field::connection, "close");
  error_code failed;
  http::write(stream, message, failed);
  // An engine may answer before it has read all, and close: then its words are there to be read.
  if (failed && failed != error_code(EPIPE, boost::system::system_category())) return failure(request, failed, connection);
  boost::beast::flat_buffer buffer;
  http::response_parser<http::buffer_body> parser;
  parser.header_limit(kLargestHeader);
  parser.body_limit(boost::none);
  http::read_header(stream, buffer, parser, failed);
  if (failed) return failure(request, failed, connection);
  Reply reply = reply_of(parser.get());
  const bool streamed = request.on_body && is_success(reply.status);
  failed = read_body(stream, buffer, parser, request, [&](std::string_view piece) {
    if (streamed) request.on_body(piece);
    else reply.body += piece;
    return reply.body.size() <= kLargestBody;
  });
  if (failed) return failure(request, failed, connection);
  return reply;
}

Result<UpgradedStream> upgrade(const Address& address, const Request& request) {
  const Connection::Deadline deadline = Connection::Clock::now() + request.patience;
  Connection connection = BELLJAR_TRY(Connection::open(address, deadline));
  Stream stream(connection, deadline);
  http::request<http::string_body> message = make(request);
  message.set(http::field::connection, "Upgrade");
  message.set(http::field::upgrade, "tcp");
  error_code failed;
  http::write(stream, message, failed);
  // An engine may answer before it has read all, and close: then its words are there to be read.
  if (failed && failed != error_code(EPIPE, boost::system::system_category())) return failure(request, failed, connection);
  boost::beast::flat_buffer buffer;
  http::response_parser<http::buffer_body> parser;
  parser.header_limit(kLargestHeader);
  http::read_header(stream, buffer, parser, failed);
  if (failed) return failure(request, failed, connection);
  UpgradedStream upgraded;
  upgraded.reply = reply_of(parser.get());
  // 101, or 200 from engines that do not know the upgrade: what follows is the stream either way.
  if (upgraded.reply.status == 101 || is_success(upgraded.reply.status)) {
    const auto rest = buffer.data();
    upgraded.early.assign(static_cast<const char*>(rest.data()), rest.size());
    upgraded.stream = std::move(connection);
    return upgraded;
  }
  failed = read_body(stream, buffer, parser, request, [&](std::string_view piece) {
    upgraded.reply.body += piece;
    return upgraded.reply.body.size() <= kLargestBody;
  });
  if (failed) return failure(request, failed, connection);
  return upgraded;
}

}  // namespace belljar::backend::container
