// One client connection that carries many requests at once (HTTP/2), with each stream seen as HTTP/1.1 text.
//
// A stream's request becomes the text that an HTTP/1.1 client would have sent (RFC 9113 section 8), so that
// it goes through the one reader and the one decision (http.h, decision.h); its answer is taken as text, too.
// src/egress/h2 has the one implementation, behind the interface that TLS has (intercept.h). Used by the
// proxy's one thread; no call blocks.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "egress/http.h"
#include "egress/intercept.h"

namespace belljar::egress {

// A message that arrives in frames, as HTTP/1.1 text.
class MessageText {
 public:
  enum class Body { kNone, kLength, kChunked };
  // A head with its blank line. Interim answers have kNone; another begin() follows them.
  void begin(std::string_view head, Body body);
  void add(std::string_view bytes);  // of the body
  // `trailers`: lines, each with its CRLF. They go with kChunked only.
  void end(std::string_view trailers = {});
  // Adds text until `text` holds about `most` bytes (a chunk's length beyond). Returns how many bytes of the body were in it.
  std::size_t take(std::string& text, std::size_t most);
  bool empty() const noexcept { return head_.empty() && body_.empty() && (!ended_ || tail_.empty()); }
  bool ended() const noexcept { return ended_; }

 private:
  std::string head_, body_, tail_;
  Body kind_ = Body::kNone;
  bool ended_ = false;
};

// One request and its answer, between the connection that carries them and the one that serves them.
struct Stream {
  static constexpr std::size_t kMostWaiting = 128U << 10;  // of an answer, for a client that does not take it; a head fits

  MessageText request;
  std::optional<HttpFault> fault;  // instead of a request: why it is none
  std::size_t taken = 0;           // bytes of the request's body that were served since the carrier last looked
  std::string answer;              // text that the carrier has not read yet
  std::size_t waiting = 0;         // bytes of the answer that it has read and the client has not taken
  bool answered = false;           // no more of `answer` comes
  bool aborted = false;            // it ends before its time
  bool turned_away = false;        // with aborted: its request was not read
  bool gone = false;               // the client has reset it, or its connection is over
  int socket = -1;                 // of the client's connection
  std::function<void()> wake_carrier, wake_server;

  std::size_t held() const noexcept { return answer.size() + waiting; }
  void tell_carrier() const {
    if (wake_carrier) wake_carrier();
  }
  void tell_server() const {
    if (wake_server) wake_server();
  }
};

// A stream as the client's end of the connection that serves it: its text instead of a socket's bytes.
class StreamEnd final : public SecureStream {
 public:
  explicit StreamEnd(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}
  ~StreamEnd() override;
  StreamEnd(const StreamEnd&) = delete;
  StreamEnd& operator=(const StreamEnd&) = delete;
  void put(std::string_view) override {}
  std::string take() override { return {}; }
  State handshake() override { return State::kReady; }
  bool open(std::string& plain, std::size_t most) override;
  void seal(std::string_view plain) override;
  std::size_t room() const override;
  bool ended() const override { return false; }
  bool broken() const override { return stream_->gone; }
  void end() override;
  void abort() override;
  const TlsFault& fault() const override { return fault_; }

 private:
  std::shared_ptr<Stream> stream_;
  TlsFault fault_;
};

// The client's connection: its frames in and out.
class Streams {
 public:
  virtual ~Streams() = default;
  virtual void put(std::string_view plain) = 0;    // bytes from the client
  virtual std::string take(std::size_t most) = 0;  // bytes for the client, about `most`; serves all streams
  virtual std::vector<std::shared_ptr<Stream>> take_opened() = 0;
  virtual std::size_t take_malformed() = 0;  // messages that were reset as no HTTP since the last call
  virtual std::size_t count() const = 0;     // streams that are open
  virtual bool reads_head() const = 0;       // the head of a request has begun and not ended
  virtual void end() = 0;                    // says GOAWAY
  virtual bool over() const = 0;             // nothing is to be read or, once take() is empty, to be said
};

}  // namespace belljar::egress
