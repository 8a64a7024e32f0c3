// The seam to TLS: what a connection that is looked into needs of it, without a header of OpenSSL. Bytes in, bytes out; no socket.
//
// src/egress/tls holds the one implementation, src/egress/h2 what it knows of HTTP/2. It is linked where it is used (belljar-full,
// the library), never into the program that an ordinary run is (docs/design/egress.md, "Why another program").
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belljar/result.h"
#include "policy/host.h"

namespace belljar::egress {

// Why TLS with one of the two ends did not come about.
struct TlsFault {
  std::string reason;  // for the record: "tls-expired", "tls-untrusted", "tls-name", "tls-sni", "tls-alpn", "tls"
  std::string error;   // RFC 9209 type
  std::string text;    // what happened, as the end of a sentence
};

// What stands between a socket's bytes and what they mean: TLS, HTTP/2 in it, or one stream of that (streams.h). Used by one
// thread.
class SecureStream {
 public:
  enum class State { kMore, kReady, kFailed };
  virtual ~SecureStream() = default;

  virtual void put(std::string_view wire) = 0;  // what the peer has sent
  virtual std::string take() = 0;               // what is to be sent to it
  // As far as what was put leads. kFailed: fault() says why; take() may hold an alert for the peer.
  virtual State handshake() = 0;
  // Adds what was decrypted until `plain` holds `most` bytes. True: there may be more without another put().
  virtual bool open(std::string& plain, std::size_t most) = 0;
  virtual void seal(std::string_view plain) = 0;
  virtual std::size_t room() const { return SIZE_MAX; }  // of seal(), before the peer takes some
  // It bounds by itself what it holds, and the peer's words about that must not wait behind what nobody takes.
  virtual bool reads_ahead() const { return false; }
  virtual std::string protocol() const { return {}; }  // once kReady: what ALPN came to; empty: nothing
  virtual bool ended() const = 0;                      // the peer said that it sends no more
  virtual bool broken() const = 0;                     // an alert, or bytes that are no TLS
  virtual void end() = 0;                              // says to the peer that we send no more
  virtual void abort() {}                              // what it has is cut short
  virtual const TlsFault& fault() const = 0;
};

class Streams;

// What is offered to a server by ALPN. kHttp2: that first, then HTTP/1.1; what is read and written is HTTP/1.1's text in any case.
enum class Offer { kHttp1, kHttp2 };

// The authority of one sandbox. Its key is made with it and leaves it never. Used by one thread at a time.
class Interceptor {
 public:
  virtual ~Interceptor() = default;
  // Towards the client, as `host`: with a certificate of ours. A ClientHello that names another server is refused
  // (unrecognized_name, RFC 6066); so is one whose ALPN has neither h2 nor http/1.1 (no_application_protocol, RFC 7301). h2 is
  // taken where it is offered.
  virtual std::unique_ptr<SecureStream> accept(const policy::Host& host) = 0;
  // Towards the server: its certificate must be valid for `host` and lead to a root that is trusted here.
  virtual std::unique_ptr<SecureStream> connect(const policy::Host& host, Offer offer = Offer::kHttp1) = 0;
  // HTTP/2 with a client whose protocol() is "h2".
  virtual std::unique_ptr<Streams> begin_streams() = 0;
  // Files for the inside: the machine's roots and ours, as PEM and as a Java key store.
  virtual std::string bundle() const = 0;
  virtual std::string java_store() const = 0;
};

struct InterceptorOptions {
  std::string ca_file;  // PEM; further roots that servers may lead to. Empty: the machine's only
};

// Errors: kFailedPrecondition with the file that cannot be used; kUnavailable, no key could be made.
using MakeInterceptor = Result<std::unique_ptr<Interceptor>> (*)(const InterceptorOptions& options);

}  // namespace belljar::egress
