// The interface to TLS for connections that are intercepted, without a header of OpenSSL. Bytes in, bytes
// out; no socket.
//
// src/egress/tls has the one implementation, src/egress/h2 its HTTP/2. Only programs that intercept are
// linked with it (belljar-full, the library), never the program of an ordinary run (docs/design/egress.md,
// "Why another program").
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

// A layer between a socket's bytes and their meaning: TLS, HTTP/2 within TLS, or one stream of that
// (streams.h). Used by one thread.
class SecureStream {
 public:
  enum class State { kMore, kReady, kFailed };
  virtual ~SecureStream() = default;

  virtual void put(std::string_view wire) = 0;  // bytes that the peer has sent
  virtual std::string take() = 0;               // bytes that are to be sent to it
  // Goes on as far as the bytes that were put allow. kFailed: fault() says why, and take() may hold an alert.
  virtual State handshake() = 0;
  // Appends decrypted bytes until `plain` holds `most`. True: there may be more without another put().
  virtual bool open(std::string& plain, std::size_t most) = 0;
  virtual void seal(std::string_view plain) = 0;
  virtual std::size_t room() const { return SIZE_MAX; }  // of seal(), before the peer takes some
  // True: it bounds its own buffers, and must read the peer's window updates even while nobody reads its data.
  virtual bool reads_ahead() const { return false; }
  virtual std::string protocol() const { return {}; }  // once kReady: what ALPN came to; empty: nothing
  virtual bool ended() const = 0;                      // the peer said that it sends no more
  virtual bool broken() const = 0;                     // an alert, or bytes that are no TLS
  virtual void end() = 0;                              // says to the peer that we send no more
  virtual void abort() {}                              // ends so that the peer sees a cut
  virtual const TlsFault& fault() const = 0;
};

class Streams;

// The protocols that are offered to a server by ALPN. kHttp2: h2 first, then HTTP/1.1. The caller reads and
// writes HTTP/1.1's text in either case.
enum class Offer { kHttp1, kHttp2 };

// The certificate authority of one sandbox. Its key is made with it and never leaves it. Used by one thread
// at a time.
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
