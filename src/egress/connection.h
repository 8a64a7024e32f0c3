// One client of the proxy, from its first byte to the end of what it asked for. Driven by the proxy's thread; never blocks.
#pragma once

#include <sys/epoll.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "egress/http.h"
#include "egress/lookups.h"
#include "egress/proxy.h"
#include "egress/relay.h"
#include "egress/socks.h"

namespace belljar::egress {

// What connections share. Owned by the proxy's thread.
struct Context {
  ProxyOptions options;
  int epoll = -1;
  std::unique_ptr<Lookups> lookups;
  PipePool pipes;
  EgressLog log;
  std::vector<policy::Ip> own;  // addresses of this machine
  std::chrono::steady_clock::time_point own_until;

  bool is_own(const policy::Ip& ip);
  void add(EgressRecord record);
  void add(Violation violation);
};

class Connection {
 public:
  using Clock = std::chrono::steady_clock;
  enum Side : std::uint32_t { kClient = 0, kServer = 1 };

  // `id` tells epoll events apart: id * 2 + Side.
  Connection(Context& context, std::uint64_t id, UniqueFd client);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  void on_event(Side side, std::uint32_t events);
  void on_resolved(const Resolved& resolved);
  // Does what can be done. True: there is more to do at once, others come first.
  bool progress();
  bool over() const noexcept { return phase_ == Phase::kOver; }
  Clock::time_point deadline() const noexcept { return deadline_; }
  void on_deadline();

 private:
  enum class Phase {
    kFirstByte,
    kHead,
    kSocksGreeting,
    kSocksPassword,
    kSocksRequest,
    kResolving,
    kDialing,
    kExchange,
    kTunnel,
    kClosing,
    kOver
  };
  enum class Protocol { kNone, kHttp, kConnect, kSocks };

  struct Problem {
    std::string reason;  // for the record
    Refusal refusal;     // for the client
    SocksReply socks = SocksReply::kNotAllowed;
    bool violation = false;
    std::string rule_key;  // of the violation
    std::string rule;
  };

  bool step();  // one phase as far as it goes; true when the phase changed
  bool first_byte();
  bool read_head();
  bool socks_greeting();
  bool socks_password();
  bool socks_request();
  bool decide();
  bool take_addresses(const Resolved& resolved);
  bool dial_next();
  bool dialled();
  bool begin_exchange();
  bool exchange();
  bool pass_request();
  bool pass_answer();
  bool answer_head();
  bool end_exchange();
  bool begin_tunnel();
  bool tunnel();
  bool closing();
  bool close_politely();
  bool leave();
  bool give_up();  // both ends are reset

  bool refuse(Problem problem);
  bool refuse(HttpFault fault);
  bool refuse(const policy::HostVerdict& verdict);
  bool fail_dial(int error);
  bool wrong_credential(const std::string& given) const;
  void enter(Phase phase, std::chrono::milliseconds patience);
  void watch(int fd, Side side) const;
  void drop_server();
  void begin_record(Protocol protocol);
  void end_record(std::string reason);
  End& end_of(Side side) { return side == kClient ? client_ : server_; }

  Context& context_;
  const std::uint64_t id_;
  End client_, server_;
  Phase phase_ = Phase::kFirstByte;
  Protocol protocol_ = Protocol::kNone;
  Clock::time_point deadline_, begun_;
  std::optional<HttpReader> request_, answer_;
  ProxyRequest asked_;
  std::vector<policy::Ip> addresses_;  // checked, still to be tried; the next one last
  bool keep_client_ = false;
  std::optional<Direction> up_, down_;
  EgressRecord record_;
  bool recording_ = false;
};

}  // namespace belljar::egress
