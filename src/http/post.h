// One POST over HTTP or HTTPS: for callers that read the answer of a service (a model) whole or as it comes. Safe from any thread;
// each call blocks its own. Writes no log; no error repeats a header or the body.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/result.h"
#include "http/client.h"

namespace belljar::http {

struct Post {
  std::string url;
  std::vector<std::string> headers;  // "name: value", without line ends
  std::string body;
  std::chrono::milliseconds timeout{0};  // of the whole exchange; 0: none
  std::chrono::milliseconds silence{0};  // without a byte from the other end; 0: any
  std::size_t most_bytes = 1U << 20;     // of the answer
  int cancel_fd = -1;                    // readable: the exchange ends
};

// Each piece of an answer with status 200, as it comes. False ends the exchange with kAborted.
using OnPiece = std::function<bool(std::string_view piece)>;

// Any status is a Reply, whose body is without what went to `on_piece`. Errors: kUnavailable, no connection, or it broke before the
// end of the answer; kDeadlineExceeded; kResourceExhausted, more than most_bytes; kCanceled; kAborted.
Result<Reply> post(const Post& what, const OnPiece& on_piece = {});

// `what` is for the sentence: "a guardian". Errors: kInvalidArgument, no http(s) URL; plain http to another machine, where
// everybody on the way would read key and content.
Result<void> check_endpoint(const std::string& url, std::string_view what);

}  // namespace belljar::http
