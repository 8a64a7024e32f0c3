// The way to the server: the decision, where the server is, and the dial.
//
// DNS rebinding. A name is looked up once, each address of the answer is judged (may_dial), and an address
// that passed is dialled by its number. The name is not resolved a second time, so the owner of its zone
// cannot give one answer to the check and another to the connect. Addresses that the rules refuse are dropped
// and the others are tried; only when none is left is the client refused, with the first reason. Addresses
// that still wait to be tried are judged again when the rules change. With network.upstream_proxy the other
// proxy resolves the name by itself, and its choice of an address is out of reach here: the enforcement
// report calls that partial.
//
// The lookup comes last. A question carries data to whoever owns the zone (CVE-2025-55284), so it is asked
// only for a name that is allowed, after the budgets of limited mode have been charged, and not at all when a
// server for it is connected already or the answer is cached.
//
// `addresses` is a stack with the next one to try at its end. The resolver's order is kept: IPv4 first.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/unique_fd.h"
#include "egress/context.h"
#include "egress/decision.h"
#include "egress/http.h"
#include "egress/phase.h"
#include "egress/proxy.h"
#include "egress/resolve.h"
#include "egress/socks.h"
#include "egress/upstream.h"
#include "policy/domains.h"
#include "policy/host.h"
#include "policy/ip.h"

namespace belljar::egress {
namespace {

Next find_server(ConnectionState& state);
Next use_addresses(ConnectionState& state, const Resolved& resolved);
Next use_upstream_addresses(ConnectionState& state, const Resolved& resolved);
Next dial_next(ConnectionState& state, std::vector<policy::Ip> addresses);
Next begin_passing(ConnectionState& state);

// --- sockets

// 0, also where it is under way; an errno.
int connect_to(int socket, const policy::Ip& ip, std::uint16_t port) {
  sockaddr_in four{};
  sockaddr_in6 six{};
  four.sin_family = AF_INET;
  six.sin6_family = AF_INET6;
  four.sin_port = six.sin6_port = htons(port);
  std::memcpy(&four.sin_addr, ip.bytes.data(), 4);
  std::memcpy(&six.sin6_addr, ip.bytes.data(), 16);
  const auto* address = ip.v6 ? reinterpret_cast<const sockaddr*>(&six) : reinterpret_cast<const sockaddr*>(&four);
  const socklen_t size = ip.v6 ? sizeof six : sizeof four;
  return ::connect(socket, address, size) == 0 || errno == EINPROGRESS ? 0 : errno;
}

UniqueFd dial(const policy::Ip& ip, std::uint16_t port, int& error) {
  UniqueFd fd(::socket(ip.v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return error = errno, UniqueFd();
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  if (const int failed = connect_to(fd.get(), ip, port); failed != 0) return error = failed, UniqueFd();
  return fd;
}

SocksReply socks_of(int error) {
  return error == ECONNREFUSED   ? SocksReply::kRefused
         : error == ENETUNREACH  ? SocksReply::kNetworkUnreachable
         : error == EHOSTUNREACH ? SocksReply::kHostUnreachable
         : error == ETIMEDOUT    ? SocksReply::kTimedOut
                                 : SocksReply::kFailed;
}

// A port of one loopback, by a socket of the sandbox's network.
bool connect_inside(const UniqueFd& socket, std::uint16_t port, bool v6) {
  const policy::Ip place = v6 ? *policy::parse_ip("::1") : policy::ipv4(INADDR_LOOPBACK);
  return connect_to(socket.get(), place, port) == 0;
}

Next fail_dial(ConnectionState& state, int error) {
  const bool upstream = by_upstream(state);
  const policy::Destination& place = upstream ? state.context.options.upstream->place : state.asked.destination;
  const char* const type = error == ECONNREFUSED ? "connection_refused"
                           : error == ETIMEDOUT  ? "connection_timeout"
                                                 : "destination_unavailable";
  return refuse(
      state,
      Problem{
          upstream ? "upstream" : "dial",
          {error == ETIMEDOUT ? 504 : 502, type,
           format("cannot connect to {}{}: {}", upstream ? "the upstream proxy " : "", to_string(place), std::strerror(error)), ""},
          socks_of(error)});
}

// --- the phases

// Until the budget of heads allows it.
class WaitingForBudget final : public Phase {
 public:
  using Phase::Phase;
  Next late() override { return find_server(state_); }
};

// For the addresses of a name, which `then` takes.
template <Next (*then)(ConnectionState&, const Resolved&)>
class AwaitingAddresses final : public Phase {
 public:
  explicit AwaitingAddresses(ConnectionState& state) : Phase(state, std::chrono::minutes(1)) {}  // the resolver has less
  Next on_resolved(const Resolved& resolved) override { return then(state_, resolved); }
  Next late() override { return on_resolved(unanswered()); }
};
using Resolving = AwaitingAddresses<use_addresses>;
using ResolvingUpstream = AwaitingAddresses<use_upstream_addresses>;

// Needs a connection to the upstream proxy; leaves one that leads to what is asked.
class Handshake final : public Phase {
 public:
  explicit Handshake(ConnectionState& state)
      : Phase(state, state.timeouts().dial), words_(*state.context.options.upstream, state.asked.destination) {
    server_.out = words_.begin();
  }
  Next go() override {
    server_.flush();
    server_.read(kMaxHead);
    const auto state = words_.feed(server_.in, server_.out);
    if (state == UpstreamHandshake::State::kDone) return begin_passing(state_);
    server_.flush();
    const bool ended = server_.eof || server_.broken;
    if (state == UpstreamHandshake::State::kMore && !ended) return client_.hung ? give_up(state_) : Next();
    const std::string why = state == UpstreamHandshake::State::kFailed ? words_.reason() : "it closed the connection";
    return refuse(state_, Problem{"upstream",
                                  {502, "http_request_error",
                                   format("the upstream proxy does not lead to {}: {}", to_string(asked_.destination), why), ""}});
  }
  Next late() override {
    return refuse(
        state_, Problem{"upstream", {504, "connection_timeout", "the upstream proxy does not answer", ""}, SocksReply::kTimedOut});
  }

 private:
  UpstreamHandshake words_;
};

// Needs a socket on its way to one address, and `addresses`: checked, still to be tried, the next one last.
class Dialing final : public Phase {
 public:
  Dialing(ConnectionState& state, std::vector<policy::Ip> addresses, bool inside_v6 = true)
      : Phase(state, state.timeouts().dial), addresses_(std::move(addresses)), inside_v6_(inside_v6) {}
  Next go() override {
    if (client_.hung) return give_up(state_);
    if (!server_.writable) return {};
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(server_.fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0 && !inside_v6_) return ask_inside(state_, true);
    if (error != 0) return fail(error);
    server_.hung = false;
    const bool asks = by_upstream(state_) && !(state_.protocol == Protocol::kHttp && asks_upstream(state_));
    return asks ? std::make_unique<Handshake>(state_) : begin_passing(state_);
  }
  Next late() override { return fail(ETIMEDOUT); }
  // Those that are still to be tried were checked by the rules before.
  void on_rules() override {
    if (!by_upstream(state_)) std::erase_if(addresses_, [this](const policy::Ip& ip) { return !may_dial(state_, ip).allowed(); });
  }

 private:
  Next fail(int error) { return addresses_.empty() ? fail_dial(state_, error) : dial_next(state_, std::move(addresses_)); }
  std::vector<policy::Ip> addresses_;
  const bool inside_v6_;  // false: of a sandbox's loopback, 127.0.0.1 is tried and ::1 is not yet
};

// Needs a socket of the sandbox's network, for a published port.
class AskingInside final : public Phase {
 public:
  AskingInside(ConnectionState& state, bool v6) : Phase(state, state.timeouts().dial), v6_(v6) {}
  Next on_socket(UniqueFd socket) override {
    state_.drop_server();
    if (!socket.valid() || !connect_inside(socket, state_.direct.port, v6_))
      return v6_ ? fail_dial(state_, ECONNREFUSED) : ask_inside(state_, true);
    state_.watch(socket.get(), ConnectionState::kServer);
    server_.fd = std::move(socket);
    return std::make_unique<Dialing>(state_, std::vector<policy::Ip>(), v6_);
  }
  Next late() override { return fail_dial(state_, ETIMEDOUT); }

 private:
  const bool v6_;
};

// --- from one to the next

// The server that was dialled for the tunnel may have lost patience with a client that was slow to ask.
bool server_waits(const Endpoint& server) {
  char byte = 0;
  return !server.hung && ::recv(server.fd.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
}

Next find_server(ConnectionState& state) {
  // The rules may be others since it was dialled: of its address, too.
  if (state.server.fd.valid() && server_waits(state.server) && !find_refusal(state)) return begin_passing(state);
  const policy::Host& host = state.asked.destination.host;
  if (host.ip) return use_addresses(state, {.addresses = {*host.ip}, .error = {}, .ttl = {}});
  if (!state.context.may_name(host.name)) return refuse(state, heads_problem(state));
  if (const auto kept = state.context.look_up(host.name, state.id)) return use_addresses(state, *kept);
  return std::make_unique<Resolving>(state);
}

Next find_upstream(ConnectionState& state) {
  const policy::Host& host = state.context.options.upstream->place.host;
  if (host.ip) return use_upstream_addresses(state, {.addresses = {*host.ip}, .error = {}, .ttl = {}});
  if (const auto kept = state.context.lookups->ask(host.name, state.id)) return use_upstream_addresses(state, *kept);
  return std::make_unique<ResolvingUpstream>(state);
}

Next use_addresses(ConnectionState& state, const Resolved& resolved) {
  const bool upstream = by_upstream(state);
  // A name that only the upstream proxy knows is left to it.
  if (resolved.addresses.empty() && upstream) return find_upstream(state);
  const policy::Destination& place = state.asked.destination;
  if (resolved.addresses.empty())
    return refuse(state, Problem{"dns",
                                 {502, "dns_error", format("{} does not resolve: {}", to_string(place.host), resolved.error), ""},
                                 SocksReply::kHostUnreachable});
  std::vector<policy::Ip> addresses;
  std::optional<policy::HostVerdict> worst;
  for (const policy::Ip& ip : resolved.addresses) {
    policy::HostVerdict verdict = may_dial(state, ip);
    if (verdict.allowed()) addresses.insert(addresses.begin(), ip);
    else if (!worst) worst = std::move(verdict);
  }
  if (addresses.empty()) return refuse(state, problem_of(*worst, place));
  return upstream ? find_upstream(state) : dial_next(state, std::move(addresses));
}

// Where it is was the caller's choice: its addresses are not judged.
Next use_upstream_addresses(ConnectionState& state, const Resolved& resolved) {
  if (resolved.addresses.empty())
    return refuse(state, Problem{"upstream",
                                 {502, "dns_error", "the upstream proxy does not resolve: " + resolved.error, ""},
                                 SocksReply::kHostUnreachable});
  return dial_next(state, {resolved.addresses.rbegin(), resolved.addresses.rend()});
}

Next dial_next(ConnectionState& state, std::vector<policy::Ip> addresses) {
  int error = ENETUNREACH;
  state.drop_server();
  while (!addresses.empty()) {
    const policy::Ip ip = addresses.back();
    addresses.pop_back();
    const std::uint16_t port = by_upstream(state) ? state.context.options.upstream->place.port : state.asked.destination.port;
    UniqueFd fd = dial(ip, port, error);
    if (!fd.valid()) continue;
    state.record.address = policy::to_string(ip);
    state.watch(fd.get(), ConnectionState::kServer);
    // A near server has answered already: that saves a round through epoll.
    pollfd now{fd.get(), POLLOUT, 0};
    state.server.writable = ::poll(&now, 1, 0) == 1;
    state.server.fd = std::move(fd);
    return std::make_unique<Dialing>(state, std::move(addresses));
  }
  return fail_dial(state, error);
}

// The server is there, or another proxy that leads to it.
Next begin_passing(ConnectionState& state) {
  if (state.protocol == Protocol::kHttps) return begin_server_tls(state);
  if (state.protocol == Protocol::kHttp) return begin_exchange(state);
  if (state.protocol == Protocol::kSocks) state.client.out += socks_reply(SocksReply::kDone);
  if (state.protocol == Protocol::kConnect) state.client.out += "HTTP/1.1 200 Connection established\r\n\r\n";
  if (can_intercept(state)) return begin_peek(state);
  // Another port of a host that knows a value, say: what is in it can still be read where it is in the clear.
  if (state.leaves() && !is_passed_through(state))
    state.guard.begin(state.context.options.credentials.known_to(state.asked.destination.host));
  else state.guard.end();  // what an earlier request on this connection asked for
  return begin_tunnel(state);
}

}  // namespace

Next decide(ConnectionState& state) {
  if (auto wrong = judge(state)) return refuse(state, *std::move(wrong));
  const auto wait = charge_heads(state);
  if (!wait) return refuse(state, heads_problem(state));
  return *wait == std::chrono::milliseconds(0) ? find_server(state) : std::make_unique<WaitingForBudget>(state, *wait);
}

Next join_host(ConnectionState& state) {
  state.asked.destination = state.direct;
  state.begin_record(Protocol::kHostPort);
  state.record.rule = "network.host_ports";
  return dial_next(state, {*state.direct.host.ip});
}

// What listens inside may do so on 127.0.0.1 or, as Node's `localhost`, on ::1.
Next ask_inside(ConnectionState& state, bool v6) {
  if (!v6) {
    state.asked.destination = state.direct;
    state.begin_record(Protocol::kPublished);
    state.record.rule = "network.publish";
  }
  if (!state.context.inner.ask(state.id, v6)) return fail_dial(state, ECONNREFUSED);
  return std::make_unique<AskingInside>(state, v6);
}

}  // namespace belljar::egress
