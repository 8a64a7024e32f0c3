// HTTP for clients of services: every wait has a deadline and can be ended by a descriptor, replies may be read as they come, and
// what a server sends has a limit. Certificates are verified, redirects are not followed. libcurl stays in client.cc.
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

namespace belljar::http {

using Clock = std::chrono::steady_clock;

struct Request {
  std::string method = "GET", url;
  std::vector<std::string> headers;  // "Name: text"
  std::string body;
  // On a connection of its own: libcurl sends again, POST or not, what an old one swallowed without an answer.
  bool only_once = false;
  bool as_file = false;                       // the body is the one file of a form, named "file"
  std::optional<Clock::time_point> deadline;  // of the whole; unset: the reader's waits have their own
  std::size_t most_reply = 64U << 20;         // all of it, also where it is read as it comes
  std::chrono::seconds connect_within{20};
};

struct Reply {
  long status = 0;
  std::string content_type;
  std::string retry_after;            // as the service wrote it
  std::optional<long> retry_seconds;  // what that means
  std::string body;
};

// The parts of a URL. nullopt: it is no URL of http or https.
struct UrlParts {
  std::string scheme, host;
  bool has_user = false;  // or a password
};
std::optional<UrlParts> parse_url(const std::string& url);
bool is_this_machine(std::string_view host) noexcept;

// A reply under way. One thread at a time. The destructor ends the transfer.
class Stream {
 public:
  enum class Progress { kSomething, kEnd, kNothing };  // kNothing: the deadline passed, or a descriptor of `wake` is readable

  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Errors: kUnavailable, the connection broke; kDeadlineExceeded, the request's own; kResourceExhausted, more than most_reply.
  Result<Progress> wait(Clock::time_point until, std::span<const int> wake);
  std::string take();  // the body's bytes since the last call
  long status() const;
  Reply head() const;  // without the body

 private:
  friend class Client;
  struct Transfer;
  class TransferPool;
  Stream(std::shared_ptr<TransferPool> pool, std::unique_ptr<Transfer> transfer);
  std::shared_ptr<TransferPool> pool_;
  std::unique_ptr<Transfer> transfer_;
};

// Keeps connections for the next request. Safe from any thread.
class Client {
 public:
  Client();
  Result<std::unique_ptr<Stream>> open(Request request) const;
  // The whole reply, whatever its status. Errors: as Stream::wait; kCanceled, `cancel_fd` (-1: none) became readable.
  Result<Reply> ask(Request request, int cancel_fd = -1) const;

 private:
  std::shared_ptr<Stream::TransferPool> pool_;
};

}  // namespace belljar::http
