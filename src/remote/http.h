// HTTP for clients of clouds: every wait has a deadline and can be ended by a descriptor, replies may be read as they come, and
// what a server sends has a limit. libcurl stays in http.cc.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/result.h"

namespace belljar::remote {

using Clock = std::chrono::steady_clock;

struct HttpRequest {
  std::string method = "GET", url;
  std::vector<std::string> headers;  // "Name: text"
  std::string body;
  // On a connection of its own: libcurl sends again, POST or not, what an old one swallowed without an answer.
  bool only_once = false;
  bool as_file = false;                       // the body is the one file of a form, named "file"
  std::optional<Clock::time_point> deadline;  // of the whole; unset: the reader's waits have their own
  std::size_t most_reply = 64U << 20;         // all of it, also where it is read as it comes
};

struct HttpReply {
  long status = 0;
  std::string content_type;
  std::optional<long> retry_after;  // seconds
  std::string body;
};

// Where it leads: what is in a URL. nullopt: no URL of http or https, or one with a user or password in it.
struct UrlParts {
  std::string scheme, host;
};
std::optional<UrlParts> parse_url(const std::string& url);
bool is_this_machine(std::string_view host) noexcept;
std::string url_escaped(std::string_view text);

// A reply under way. One thread at a time. The destructor ends the transfer.
class HttpStream {
 public:
  enum class Came { kSomething, kEnd, kNothing };  // kNothing: the deadline passed, or a descriptor of `wake` is readable

  ~HttpStream();
  HttpStream(const HttpStream&) = delete;
  HttpStream& operator=(const HttpStream&) = delete;

  // Errors: kUnavailable, the connection broke; kDeadlineExceeded, the request's own; kResourceExhausted, more than most_reply.
  Result<Came> wait(Clock::time_point until, std::span<const int> wake);
  std::string take();  // the body's bytes since the last call
  long status() const;
  HttpReply head() const;  // without the body

 private:
  friend class HttpClient;
  struct Line;
  class Lines;
  HttpStream(std::shared_ptr<Lines> lines, std::unique_ptr<Line> line);
  std::shared_ptr<Lines> lines_;
  std::unique_ptr<Line> line_;
};

// Keeps connections for the next request. Safe from any thread.
class HttpClient {
 public:
  HttpClient();
  Result<std::unique_ptr<HttpStream>> open(HttpRequest request) const;
  // The whole reply, whatever its status. Errors: as HttpStream::wait; kCanceled, `cancel_fd` (-1: none) became readable.
  Result<HttpReply> ask(HttpRequest request, int cancel_fd = -1) const;

 private:
  std::shared_ptr<HttpStream::Lines> lines_;
};

}  // namespace belljar::remote
