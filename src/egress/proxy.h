// The egress proxy of one sandbox: HTTP proxy, CONNECT and SOCKS5 on one listening socket, judged by the
// policy's rules.
//
// The socket was made inside the sandbox's network namespace and passed out (launch/), so only this sandbox
// can connect to it, and no process stands between. One thread accepts, asks the rules, looks the name up on
// the host, dials the very address that was checked, and moves bytes with splice(2). The command's namespace
// has no route: when the proxy ends, nothing gets out.
//
// A program that knows nothing of a proxy is served too: it resolves names by the DNS socket inside, connects
// to the stand-in address that it gets, and is redirected here.
//
//   auto proxy = BELLJAR_TRY(Proxy::start(std::move(listener), {.rules = rules}));
//   ...                                   // the command runs
//   EgressLog log = proxy->stop();        // one record for each request or connection, and the refusals
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "belljar/exec_result.h"
#include "belljar/result.h"
#include "egress/credentials.h"
#include "egress/intercept.h"
#include "egress/resolve.h"
#include "egress/upstream.h"
#include "policy/defaults.h"
#include "policy/domains.h"
#include "policy/tls_interception.h"

namespace belljar::egress {

struct ProxyTimeouts {
  std::chrono::milliseconds head{15'000};         // from the first byte to the whole request
  std::chrono::milliseconds idle_client{60'000};  // between requests, and before the first
  std::chrono::milliseconds dial{10'000};         // for each address
  std::chrono::milliseconds answer{300'000};      // without a byte in either direction, while a request is served
  std::chrono::milliseconds tunnel{3'600'000};    // the same, in a tunnel
  std::chrono::milliseconds half_closed{120'000};
  std::chrono::milliseconds linger{2'000};  // for a refused client to read its answer
};

enum class Methods {
  kFull,
  kLimited
};  // kLimited: GET, HEAD and OPTIONS without bodies; no tunnels, since what is in them cannot be seen

// Where the rules for hosts come from, for what refusals say.
struct RuleOrigins {
  Origin allowed, denied, requests;
};

struct ProxyOptions {
  policy::HostRules rules;
  RuleOrigins rule_origins;
  Methods methods = Methods::kFull;
  std::string credential;  // "user:password" that clients must send; empty: none
  Origin mode_origin, limit_origin, heads_origin, credentials_origin;
  std::shared_ptr<Interceptor> interceptor;  // none: TLS is never intercepted, and requests that need it are refused
  policy::InterceptionRules interception;
  Credentials credentials;
  std::optional<Upstream> upstream;
  Resolve resolve = resolve_on_host;
  std::vector<policy::Ip> (*own_addresses)() = egress::own_addresses;
  ProxyTimeouts timeouts;
  std::size_t max_connections = 4096;
  std::uint64_t max_bytes = UINT64_MAX;                   // both ways together; then connections end and no more begin
  std::uint64_t max_rate = 0;                             // bytes a second, both ways together; 0: as fast as it goes
  std::uint64_t max_heads = 64U << 10;                    // bytes a minute in heads, for each rule; kLimited only (head_budget.h)
  std::size_t max_records = 1000;                         // of each kind; the rest is counted
  std::size_t max_lookups = 4;                            // threads that wait for name servers at one time
  std::uint32_t fake_addresses = policy::kFakeAddresses;  // the /16 that names inside lead to
};

// How a client reached the proxy.
enum class ClientKind : std::uint8_t {
  kProxy,      // speaks to a proxy: HTTP, CONNECT, SOCKS5
  kDirect,     // was redirected here: the address that it connected to is its destination
  kDnsStream,  // DNS over TCP
  kHostPort,   // joined with ProxyListener::port of the host's loopback
  kPublished,  // comes from the host and is joined with ProxyListener::port of the sandbox's loopback
};

// A listening TCP socket whose clients are all of one kind.
struct ProxyListener {
  ClientKind kind = ClientKind::kProxy;
  UniqueFd fd;  // listening TCP socket; made non-blocking
  std::uint16_t port = 0;
};

// The sockets that lead from the sandbox to the proxy. `listeners` holds at least one of kProxy; a client
// that was redirected to that one is kDirect.
struct ProxySockets {
  std::vector<ProxyListener> listeners;
  UniqueFd dns;      // UDP with IP_PKTINFO; none: no names inside
  UniqueFd maker;    // gives out TCP sockets of the sandbox's network (launch::InnerSocket::Kind::kMaker), for kPublished
  UniqueFd diag;     // sock_diag of the sandbox's network; none: refusals tell no process
  int init_pid = 0;  // pid 1 of the sandbox as we see it: the tree that is searched for a process
};

struct EgressLog {
  std::vector<EgressRecord> records;  // in the order they ended
  std::uint64_t records_dropped = 0;
  std::vector<Violation> violations;  // sequence from 0, of each log anew
  std::uint64_t violations_dropped = 0;
};

// Owns one thread from start() on. Threads that wait for a name server when it stops end by themselves, a few seconds later at
// worst; they share nothing with it by then. Any thread may call stop(), once.
class Proxy {
 public:
  // Errors: kResourceExhausted.
  static Result<std::unique_ptr<Proxy>> start(ProxySockets sockets, ProxyOptions options);
  static Result<std::unique_ptr<Proxy>> start(UniqueFd listener, ProxyOptions options);  // one listener, kProxy
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  // Closes the listeners and every connection, and hands out what happened since the last take_log().
  EgressLog stop();

  // The next two may be called from any thread, also while stop() runs; they return when it is done.
  // set_rules() replaces the rules: connections that the new ones refuse are refused, or cut if an answer has
  // begun, and then their record says `rules`. `origins` are those of the new rules; empty: as before.
  void set_rules(policy::HostRules rules, std::optional<RuleOrigins> origins = {});
  // What happened since the last take_log(): connections that have ended, and those whose client has closed its end. Empty after
  // stop(). Neither is to be called on the proxy's own thread.
  EgressLog take_log();

 private:
  struct State;
  bool on_thread(const std::function<void()>& act);  // false: it has stopped
  explicit Proxy(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace belljar::egress
