// HTTP to the engine: one request a connection. The only file below that knows Beast.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "backend/container/connection.h"
#include "belljar/cancel.h"
#include "belljar/result.h"

namespace belljar::backend::container {

enum class Method { kGet, kPost, kDelete };

struct Request {
  Method method = Method::kGet;
  std::string target;                                             // "/v1.41/containers/json?all=1"
  std::string json;                                               // body; empty: none
  std::map<std::string, std::string> headers;                     // further ones
  std::chrono::milliseconds patience = std::chrono::seconds(30);  // for all of it; with on_body between two pieces
  std::function<void(std::string_view)> on_body;                  // of a success, piece by piece, instead of Reply::body
  CancelToken cancel;                                             // ends the wait for the answer
};

struct Reply {
  unsigned status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // at most 64 MiB
};

// Errors: as Connection::open; kDeadlineExceeded, the engine does not answer; kDataLoss, it broke off or spoke no HTTP; kCanceled.
Result<Reply> fetch(const Address& address, const Request& request);

// A request that turns its connection into a stream both ways ("Upgrade: tcp"). With a status that is no success `stream` is unset.
struct UpgradedStream {
  Reply reply;
  std::optional<Connection> stream;
  std::string early;  // of the stream, that came with the answer's header
};
Result<UpgradedStream> upgrade(const Address& address, const Request& request);

// `text` as part of a query.

}  // namespace belljar::backend::container
