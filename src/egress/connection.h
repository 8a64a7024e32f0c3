// One client of the proxy, from its first byte to the end of what it asked for. Driven by the proxy's thread; never blocks.
#pragma once

#include <sys/epoll.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "egress/context.h"
#include "egress/dns.h"
#include "egress/http.h"
#include "egress/relay.h"
#include "egress/socks.h"
#include "egress/streams.h"
#include "egress/websocket.h"

namespace belljar::egress {

class Connection {
 public:
  using Clock = std::chrono::steady_clock;
  enum Side : std::uint32_t { kClient = 0, kServer = 1 };

  // `id` tells epoll events apart: id * 2 + Side. `direct`: where a client of kDirect wanted to go.
  Connection(Context& context, std::uint64_t id, UniqueFd client, Way way, policy::Destination direct);
  // Serves one stream of another connection.
  Connection(Context& context, std::uint64_t id, Born born);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  void on_event(Side side, std::uint32_t events);
  void on_resolved(const Resolved& resolved);
  void on_socket(UniqueFd socket);  // an answer of Context::inner
  void on_rules();                  // those of Context::options are others now
  // Does what can be done. True: there is more to do at once, others come first.
  bool progress();
  bool waits_for_credit() const noexcept { return starved_; }
  bool over() const noexcept { return phase_ == Phase::kOver; }
  Clock::time_point deadline() const noexcept { return std::min(deadline_, silence_); }
  void on_deadline();

 private:
  enum class Phase {
    kArrived,
    kFirstByte,
    kHead,
    kSocksGreeting,
    kSocksPassword,
    kSocksRequest,
    kQuestion,
    kAnswering,
    kSocket,
    kFindingUpstream,
    kHandshake,
    kHeld,
    kResolving,
    kDialing,
    kPeek,
    kClientTls,
    kServerTls,
    kStreams,
    kExchange,
    kTunnel,
    kBreaking,
    kClosing,
    kOver
  };
  enum class Protocol { kNone, kHttp, kConnect, kSocks, kDirect, kHostPort, kPublished, kHttps };

  struct Problem {
    std::string reason;  // for the record
    Refusal refusal;     // for the client
    SocksReply socks = SocksReply::kNotAllowed;
    bool violation = false;
    std::string rule_key;  // of the violation
    std::string rule;
  };

  bool step();  // one phase as far as it goes; true when the phase changed
  bool arrive();
  bool join_host();
  bool join_inside();
  bool connect_inside(const UniqueFd& socket) const;
  bool is_inspected() const;
  bool first_byte();
  bool read_head();
  const policy::Destination* fixed_place() const;
  void take_name();
  void begin_unread();
  bool socks_greeting();
  bool socks_password();
  bool socks_request();
  bool question();
  bool answer(const DnsAnswer& answer);
  bool answer_resolved(const Resolved& resolved);
  Culprit culprit() { return context_.culprits.find(stream_ != nullptr ? stream_->socket : client_.fd.get()); }
  bool decide();
  bool find_place();
  bool refuse_body();
  bool refuse_heads();
  bool take_addresses(const Resolved& resolved);
  bool dial_next();
  bool judge_request();
  const policy::RequestRule* find_request_rule() const;
  bool spend();
  bool dialled();
  bool begin_exchange();
  bool exchange();
  bool is_enough(std::uint64_t passed);
  bool pass_request();
  bool pass_answer();
  bool answer_head();
  bool end_exchange();
  bool begin_tunnel();
  bool tunnel();
  bool begin_breaking();
  bool breaking();
  bool deliver_rest();
  bool closing();
  bool close_politely();
  bool leave();
  bool give_up();  // both ends are reset
  bool give_up_stream();
  void note_unread_stream();
  bool close_stream();

  bool refuse(Problem problem);
  bool refuse(HttpFault fault);
  bool refuse(const policy::HostVerdict& verdict);
  Problem problem_of(const policy::HostVerdict& verdict) const;
  std::optional<policy::HostVerdict> find_refusal();
  // Not joined with a port of one loopback: the rules for hosts are about it.
  bool leaves() const noexcept { return way_ == Way::kProxy || way_ == Way::kDirect; }
  bool by_upstream() const;
  bool asks_upstream() const;  // in words of HTTP, and not for a tunnel
  bool find_upstream();
  bool take_upstream(const Resolved& resolved);
  bool handshake();
  bool begin_passing();
  bool can_look() const;  // into the TLS of asked_.destination
  bool looks_into() const;
  bool is_left_whole() const;  // by network.tls_passthrough
  bool may_stay_whole() const;
  bool stay_whole();
  bool server_waits() const;
  bool server_speaks() const;
  bool peek();
  bool client_tls();
  bool begin_streams();
  bool carry_streams();
  bool move_frames();
  void bear_streams();
  void note_malformed();
  void set_streams_deadline(bool moved);
  bool end_streams();
  bool begin_server_tls();
  bool server_tls();
  bool check_credentials();
  bool check_trailers();
  bool refuse_misplaced(const Credential& wrong);
  void guard_answers(const policy::Destination& place);
  void stop_guarding();
  std::string filter(std::string_view bytes, bool last);
  void restore(HttpHead& head) const;
  void begin_answer();
  bool check_answer();
  bool check_coding();
  void deliver(std::string_view raw);
  void deliver_body(const std::string& body);
  void give_early();
  bool refuse_spent();
  bool fail_dial(int error);
  bool wrong_credential(const std::string& given) const;
  void enter(Phase phase, std::chrono::milliseconds patience);
  void watch(int fd, Side side) const;
  void drop_server();
  void note_violation(const Problem& problem);
  void begin_record(Protocol protocol);
  void end_record(std::string reason);
  End& end_of(Side side) { return side == kClient ? client_ : server_; }

  Context& context_;
  const std::uint64_t id_;
  const Way way_;
  const policy::Destination direct_;
  End client_, server_;
  Phase phase_ = Phase::kArrived;
  Protocol protocol_ = Protocol::kNone;
  Clock::time_point deadline_, begun_;
  std::optional<HttpReader> request_, answer_;
  ProxyRequest asked_;
  DnsQuestion asked_name_;             // kAnswering
  std::vector<policy::Ip> addresses_;  // checked, still to be tried; the next one last
  std::optional<UpstreamHandshake> handshake_;
  std::optional<policy::Destination> tunnel_;  // what the client has asked for, where its requests are read (connection_tls.cc)
  bool dialled_ahead_ = false;                 // its first request finds the server connected
  HttpHead head_;                              // of the request, as it goes on
  std::optional<Restorer> restorer_;           // of the answer
  std::optional<WebSocketRestorer> frames_;    // instead, once a WebSocket has begun
  std::unique_ptr<Streams> streams_;           // kStreams: the client's HTTP/2 (connection_streams.cc)
  std::shared_ptr<Stream> stream_;             // that this connection serves; then the client has no socket
  std::size_t held_ = SIZE_MAX;                // of its answer, when that was last looked at (kClosing, kBreaking)
  enum class Carrying { kNothing, kHead, kStreams } carrying_ = Carrying::kNothing;
  Clock::time_point silence_ = Clock::time_point::max();  // when to give out the little that restorer_ holds
  bool keep_client_ = false;
  bool inside_v6_ = false;              // kPublished: ::1 after 127.0.0.1
  bool starved_ = false;                // may pass nothing until the rate allows it
  std::chrono::milliseconds pause_{0};  // kBreaking: before the client's queue is looked at again
  const char* broken_as_ = "cut";       // in the record of what had a server and is given up
  std::uint64_t spent_ = 0;             // of what is recorded, already told to the context
  std::optional<Direction> up_, down_;
  EgressRecord record_;
  bool recording_ = false;
};

}  // namespace belljar::egress
