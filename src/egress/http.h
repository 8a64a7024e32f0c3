// HTTP/1.1 (RFC 9112) as a proxy reads it: strict, since two readings of one message are how a request is smuggled past a rule.
// The parsing is Boost.Beast's, which stays in http.cc; what it forgives is refused here first. Pure.
//
// Refused, each with its status: a line that ends in a bare LF or CR (those of chunks, too), a folded field, NUL, two lengths, a
// length beside chunked, any other transfer coding, trailers, two Hosts or none, a Host that is not the target's, a user name in
// the target, a head over 64 KiB (431), HTTP/1.0 with chunked, TRACE (405), a target that is neither http:// nor CONNECT's.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/host.h"

namespace belljar::egress {

inline constexpr std::size_t kMaxHead = 64U << 10;

struct HttpField {
  std::string name;
  std::string value;
};

struct HttpHead {
  std::string method, target;  // of a request
  int status = 0;              // of a response
  std::string phrase;
  int version = 11;
  std::vector<HttpField> fields;
};

// Why a message is refused: the status for the client and one sentence.
struct HttpFault {
  int status = 400;
  std::string reason;
};

// One message, fed as it arrives. Bytes that feed() has taken are valid and may be passed on as they are.
class HttpReader {
 public:
  enum class Kind { kRequest, kResponse };
  // `no_body`: the response to HEAD, whatever its fields say.
  explicit HttpReader(Kind kind, bool no_body = false);
  void keep_body();         // before the head is done: from then on take_body() has what was in the frames
  std::string take_body();  // what feed() found since
  void allow_trailers();    // of a request: else they are a fault
  HttpReader(HttpReader&&) noexcept;
  HttpReader& operator=(HttpReader&&) noexcept;
  ~HttpReader();

  // How many bytes of `data` were taken; stops after the head once, so that the caller can look at it. 0: more is needed, or the
  // message is done or faulty.
  std::size_t feed(std::string_view data);
  bool head_done() const noexcept;
  bool done() const noexcept;
  // The peer closed. True when the message may end so (RFC 9112 section 6.3).
  bool end() noexcept;
  bool needs_end() const noexcept;    // its length is the end of the connection
  bool keeps_alive() const noexcept;  // by version and Connection
  const std::optional<HttpFault>& fault() const noexcept;
  const HttpHead& head() const noexcept;
  const std::vector<HttpField>& trailers() const noexcept;  // the fields after a chunked body

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Whether what starts with letters, as a request does, is none: who speaks so (SSH, say) would wait for an answer to its first
// line. Only `SSH-` is known before that line is whole.
bool begins_other(std::string_view data) noexcept;

// What a client asks of the proxy.
struct ProxyRequest {
  bool connect = false;
  policy::Destination destination;
  std::string method;
  std::string path;  // origin form, for a forwarded request
  // What fields ask of servers and frameworks that obey them instead of the first line (X-HTTP-Method-Override, X-Original-URL).
  std::vector<std::string> other_methods, other_paths;
  std::string authorization;  // Proxy-Authorization as it came
  bool upgrade = false;       // to websocket, the one protocol that is passed on
  bool secure = false;        // came through intercepted TLS
  bool keep_alive = true;     // with the client
  bool stream = false;        // one of several on its connection (HTTP/2): what is for its trailers goes on as well
};

// Judges a request head as a whole. `direct`: the client thinks that it talks to that place itself, so its targets are paths;
// so may a Host without a port; `secure`: and through TLS.
std::optional<ProxyRequest> read_request(const HttpHead& head, bool keeps_alive, HttpFault& fault,
                                         const policy::Destination* direct = nullptr, bool secure = false);

// The head for the server: origin form, the Host of `request`, no field that was meant for us, one message a connection. For
// another proxy (`upstream`, "user:password" or empty) the target is a whole URL.
std::string forwarded_head(const HttpHead& head, const ProxyRequest& request, const std::string* upstream = nullptr);
// Whether the body of an answer went through anything but one `chunked`: who reads its bytes does not see what it says.
bool is_encoded(const HttpHead& head);
// The same of its transfer alone: HTTP/2 has no such coding, and no field that would tell of it.
bool is_transfer_coded(const HttpHead& head);
// The field of that name, if there is exactly one or more: the first.
const std::string* find_field(const HttpHead& head, std::string_view name);
// "Proxy-Authorization: Basic ...\r\n" for "user:password"; nothing for nothing.
std::string proxy_authorization(std::string_view credential);
// The head for the client: fields of the connection are ours.
std::string returned_head(const HttpHead& head, bool keep_alive, bool upgrade);

// An answer of our own: status line with the reason, Proxy-Status (RFC 9209), a text body.
struct Refusal {
  int status = 403;
  std::string error;   // RFC 9209 type, or one of ours: "http_request_denied", "dns_error", ...
  std::string reason;  // one sentence
  std::string next;    // may be empty
};
std::string refusal_text(const Refusal& refusal, bool head_only, bool keep_alive);

// The user and password of `Basic ...`, RFC 7617; nullopt when it is something else.
std::optional<std::string> basic_credential(std::string_view field);

}  // namespace belljar::egress
