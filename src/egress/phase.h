// The phases of a client's connection. The idea:
//
//   - A phase is a small class. It waits for one thing (a head, an address, a handshake, the next piece) and holds what
//     belongs to that alone. What phases hand on to each other is in the ConnectionState that they share.
//   - go() does what can be done and returns the next phase, or nothing when this one still waits. A function that may end a
//     phase returns the same, so that each refusal is `if (Next next = ...) return next;`. Nothing else changes the phase.
//   - A class is known in its own file only. Other files call the functions at the end of this one, each of which says what it
//     needs and what it leaves.
//
// The order. Nothing is looked up or dialled before decide(), and no byte of the client's leaves before the
// server is connected:
//
//   phase_client.cc  FirstByte, Head, Socks..., DnsStream: what does the client want? They leave `asked`, `protocol`, a record.
//   phase_server.cc  WaitingForBudget, Resolving, ResolvingUpstream: may it, and where is the server? They leave addresses
//                    that were checked. AskingInside, Dialing, Handshake leave `server`, connected.
//   phase_tls.cc     Peek, ClientTls, ServerTls, where TLS is intercepted. They leave endpoints whose bytes are the plain text.
//                    CarryingStreams: a client's HTTP/2, where each stream is a connection of its own that begins at Head.
//   phase_pass.cc    Exchange, Tunnel: bytes both ways. They leave a record that is ended.
//   phase_end.cc     Closing, Breaking, Finished: three ways to part. All is said, the server broke off, reset.
//
// After Exchange, and after ClientTls, a client is at FirstByte again: a request within TLS is decided like
// any other.
//
// An earlier version was one class with an enumerator for each phase and some seventy functions that returned
// bool. True meant that the phase had changed, that it had not, or that the request may go on, depending on
// the function, and every field was visible in every phase. A std::variant of phases would need all of them
// complete where it is named: 20 classes and what they include, in one header.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "belljar/exec_result.h"
#include "egress/context.h"
#include "egress/culprit.h"
#include "egress/http.h"
#include "egress/proxy.h"
#include "egress/relay.h"
#include "egress/resolve.h"
#include "egress/socks.h"
#include "egress/streams.h"
#include "egress/websocket.h"
#include "policy/host.h"

namespace belljar::egress {

// How the client asks: in a protocol for proxies, by a direct connection, or through TLS that is intercepted
// (kHttps).
enum class Protocol { kNone, kHttp, kConnect, kSocks, kDirect, kHostPort, kPublished, kHttps };

// Why a request is refused.
struct Problem {
  std::string reason;  // for the record
  Refusal refusal;     // for the client
  SocksReply socks = SocksReply::kNotAllowed;
  bool violation = false;
  std::string rule_key = {};  // of the violation
  std::string rule = {};
};

// What the phases of one connection share. Owned by the connection and used on the proxy's thread.
struct ConnectionState {
  using Clock = std::chrono::steady_clock;
  enum Side : std::uint32_t { kClient = 0, kServer = 1 };

  Context& context;
  const std::uint64_t id;
  const ClientKind client_kind;
  const policy::Destination direct;  // where a client of kDirect wanted to go
  Endpoint client = {}, server = {};
  std::shared_ptr<Stream> stream = {};  // that this connection serves; then the client has no socket
  // The destination of a tunnel whose requests are read. A server that is connected already was dialled for
  // the tunnel, and the first request uses it.
  std::optional<policy::Destination> tunnel = {};

  // About the last request.
  Protocol protocol = Protocol::kNone;
  ProxyRequest asked = {};
  std::optional<HttpReader> request = {};
  HttpHead head = {};  // of the request, as it goes on
  AnswerGuard guard = {};
  EgressRecord record = {};
  bool recording = false;
  bool tunnelled = false;         // bytes pass unread
  const char* broken_as = "cut";  // reason in the record if a connection with a server is given up
  std::uint64_t spent = 0;        // bytes of the record that the context has counted already
  Clock::time_point begun = {};

  Clock::time_point deadline = {};
  Clock::time_point again = Clock::time_point::max();  // the phase wants to look again
  bool starved = false;                                // may pass nothing until the rate allows it

  const ProxyTimeouts& timeouts() const noexcept { return context.options.timeouts; }
  void wait(std::chrono::milliseconds patience) { deadline = Clock::now() + patience; }
  void watch(int fd, Side side) const;
  void drop_server() { server = Endpoint{}; }
  bool is_limited() const noexcept { return context.options.methods == Methods::kLimited; }
  // True: the rules for hosts are about it. False: it is joined with a port of a loopback.
  bool leaves() const noexcept { return client_kind == ClientKind::kProxy || client_kind == ClientKind::kDirect; }
  // True: one request that can be read. False: something that carries requests, or anything else.
  bool is_request() const noexcept { return protocol == Protocol::kHttp || protocol == Protocol::kHttps; }
  // The destination of all requests on this connection, whatever they say; nullptr: each names its own.
  const policy::Destination* fixed_place() const {
    return tunnel ? &*tunnel : client_kind == ClientKind::kDirect ? &direct : nullptr;
  }
  Culprit culprit() { return context.culprits.find(stream != nullptr ? stream->socket : client.fd.get()); }

  void begin_record(Protocol protocol);
  void begin_unread();
  void note_unread_stream();
  void note_violation(const Problem& problem);
  void end_record(std::string reason);
  std::uint64_t passed() const noexcept { return record.bytes_sent + record.bytes_received; }
  bool may_pass();  // false: starved
  bool spend();     // false: that was the last of limits.egress_bytes
};

class Phase;
using Next = std::unique_ptr<Phase>;  // nullptr: nothing changes

class Phase {
 public:
  explicit Phase(ConnectionState& state)
      : state_(state), context_(state.context), client_(state.client), server_(state.server), asked_(state.asked) {}
  Phase(ConnectionState& state, std::chrono::milliseconds patience) : Phase(state) { state.wait(patience); }
  virtual ~Phase() = default;
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

  virtual Next go() { return {}; }  // does what can be done without waiting
  virtual Next late();              // its deadline has passed; both ends are reset unless the phase overrides it
  virtual Next on_resolved(const Resolved&) { return {}; }
  virtual Next on_socket(UniqueFd) { return {}; }   // an answer of Context::inner
  virtual void on_rules() {}                        // Context::options.rules were replaced
  virtual void on_silence() {}                      // ConnectionState::again or AnswerGuard::due() has come
  virtual bool has_more() { return false; }         // it could go on at once, after the others had a turn
  virtual bool has_begun() const { return false; }  // the client has had its 200, or the head of an answer
  virtual bool over() const noexcept { return false; }

 protected:
  Next wait_for_client();  // which has not said enough yet; where it says no more, it leaves
  ConnectionState& state_;
  Context& context_;
  Endpoint& client_;
  Endpoint& server_;
  ProxyRequest& asked_;
};

inline constexpr char kTlsHandshake = 22;  // the first byte of a ClientHello, RFC 8446 section 5.1
inline Resolved unanswered() { return {.addresses = {}, .error = "the name servers do not answer", .ttl = {}}; }

// --- where one file hands over to another: what each needs is in `state` already

Next arrive(ConnectionState& state);  // a client that has just been accepted
Next begin_head(ConnectionState& state);
Next begin_first_byte(ConnectionState& state);

Next decide(ConnectionState& state);  // `asked`, `protocol`, a record; for a request `request` and `head`
// Without a decision: the caller of the sandbox joined these ports.
Next join_host(ConnectionState& state);
Next ask_inside(ConnectionState& state, bool v6);

Next begin_peek(ConnectionState& state);        // a server that is connected, for `asked`, and a client that thinks it has it
Next begin_server_tls(ConnectionState& state);  // the same, for a request
Next begin_exchange(ConnectionState& state);
Next begin_tunnel(ConnectionState& state);
Next begin_streams(ConnectionState& state);  // a client whose TLS says h2

Next refuse(ConnectionState& state, Problem problem);  // ends the record; the client is told, where it can be
Next refuse(ConnectionState& state, const HttpFault& fault);
Next refuse_spent(ConnectionState& state, bool begun);  // limits.egress_bytes; `begun`: the client has had the head of an answer
Next leave(ConnectionState& state);                     // the client said all it had to say, and that was no request
Next close_politely(ConnectionState& state);            // what is to be written goes out first
// The server broke off. `rest`: of a tunnel, what it had said.
Next begin_breaking(ConnectionState& state, std::optional<Direction> rest = {});
Next give_up(ConnectionState& state);  // both ends are reset
Next end(ConnectionState& state);

}  // namespace belljar::egress
