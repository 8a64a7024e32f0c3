// The way to the server: the decision, where the server is, and the dial.
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

Next find_place(Talk& talk);
Next take_addresses(Talk& talk, const Resolved& resolved);
Next take_upstream(Talk& talk, const Resolved& resolved);
Next dial_next(Talk& talk, std::vector<policy::Ip> addresses);
Next begin_passing(Talk& talk);

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

Next fail_dial(Talk& talk, int error) {
  const bool upstream = by_upstream(talk);
  const policy::Destination& place = upstream ? talk.context.options.upstream->place : talk.asked.destination;
  const char* const type = error == ECONNREFUSED ? "connection_refused"
                           : error == ETIMEDOUT  ? "connection_timeout"
                                                 : "destination_unavailable";
  return refuse(
      talk,
      Problem{
          upstream ? "upstream" : "dial",
          {error == ETIMEDOUT ? 504 : 502, type,
           format("cannot connect to {}{}: {}", upstream ? "the upstream proxy " : "", to_string(place), std::strerror(error)), ""},
          socks_of(error)});
}

// --- the phases

// Until the budget of heads allows it.
class Held final : public Phase {
 public:
  using Phase::Phase;
  Next late() override { return find_place(talk_); }
};

// For the addresses of a name, which `then` takes.
template <Next (*then)(Talk&, const Resolved&)>
class Finding final : public Phase {
 public:
  explicit Finding(Talk& talk) : Phase(talk, std::chrono::minutes(1)) {}  // the resolver has less
  Next on_resolved(const Resolved& resolved) override { return then(talk_, resolved); }
  Next late() override { return on_resolved(unanswered()); }
};
using Resolving = Finding<take_addresses>;
using FindingUpstream = Finding<take_upstream>;

// Needs a connection to the upstream proxy; leaves one that leads to what is asked.
class Handshake final : public Phase {
 public:
  explicit Handshake(Talk& talk)
      : Phase(talk, talk.timeouts().dial), words_(*talk.context.options.upstream, talk.asked.destination) {
    server_.out = words_.begin();
  }
  Next go() override {
    server_.flush();
    server_.read(kMaxHead);
    const auto state = words_.feed(server_.in, server_.out);
    if (state == UpstreamHandshake::State::kDone) return begin_passing(talk_);
    server_.flush();
    const bool ended = server_.eof || server_.broken;
    if (state == UpstreamHandshake::State::kMore && !ended) return client_.hung ? give_up(talk_) : Next();
    const std::string why = state == UpstreamHandshake::State::kFailed ? words_.reason() : "it closed the connection";
    return refuse(talk_, Problem{"upstream",
                                 {502, "http_request_error",
                                  format("the upstream proxy does not lead to {}: {}", to_string(asked_.destination), why), ""}});
  }
  Next late() override {
    return refuse(
        talk_, Problem{"upstream", {504, "connection_timeout", "the upstream proxy does not answer", ""}, SocksReply::kTimedOut});
  }

 private:
  UpstreamHandshake words_;
};

// Needs a socket on its way to one address, and `addresses`: checked, still to be tried, the next one last.
class Dialing final : public Phase {
 public:
  Dialing(Talk& talk, std::vector<policy::Ip> addresses, bool inside_v6 = true)
      : Phase(talk, talk.timeouts().dial), addresses_(std::move(addresses)), inside_v6_(inside_v6) {}
  Next go() override {
    if (client_.hung) return give_up(talk_);
    if (!server_.writable) return {};
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(server_.fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0 && !inside_v6_) return ask_inside(talk_, true);
    if (error != 0) return fail(error);
    server_.hung = false;
    const bool asks = by_upstream(talk_) && !(talk_.protocol == Protocol::kHttp && asks_upstream(talk_));
    return asks ? std::make_unique<Handshake>(talk_) : begin_passing(talk_);
  }
  Next late() override { return fail(ETIMEDOUT); }
  // Those that are still to be tried were checked by the rules before.
  void on_rules() override {
    if (!by_upstream(talk_)) std::erase_if(addresses_, [this](const policy::Ip& ip) { return !may_dial(talk_, ip).allowed(); });
  }

 private:
  Next fail(int error) { return addresses_.empty() ? fail_dial(talk_, error) : dial_next(talk_, std::move(addresses_)); }
  std::vector<policy::Ip> addresses_;
  const bool inside_v6_;  // false: of a sandbox's loopback, 127.0.0.1 is tried and ::1 is not yet
};

// Needs a socket of the sandbox's network, for a published port.
class AskingInside final : public Phase {
 public:
  AskingInside(Talk& talk, bool v6) : Phase(talk, talk.timeouts().dial), v6_(v6) {}
  Next on_socket(UniqueFd socket) override {
    talk_.drop_server();
    if (!socket.valid() || !connect_inside(socket, talk_.direct.port, v6_))
      return v6_ ? fail_dial(talk_, ECONNREFUSED) : ask_inside(talk_, true);
    talk_.watch(socket.get(), Talk::kServer);
    server_.fd = std::move(socket);
    return std::make_unique<Dialing>(talk_, std::vector<policy::Ip>(), v6_);
  }
  Next late() override { return fail_dial(talk_, ETIMEDOUT); }

 private:
  const bool v6_;
};

// --- from one to the next

// The server that was dialled for the tunnel may have lost patience with a client that was slow to ask.
bool server_waits(const End& server) {
  char byte = 0;
  return !server.hung && ::recv(server.fd.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
}

Next find_place(Talk& talk) {
  // The rules may be others since it was dialled: of its address, too.
  if (talk.server.fd.valid() && server_waits(talk.server) && !find_refusal(talk)) return begin_passing(talk);
  const policy::Host& host = talk.asked.destination.host;
  if (host.ip) return take_addresses(talk, {.addresses = {*host.ip}, .error = {}, .keep = {}});
  if (!talk.context.may_name(host.name)) return refuse(talk, heads_problem(talk));
  if (const auto kept = talk.context.look_up(host.name, talk.id)) return take_addresses(talk, *kept);
  return std::make_unique<Resolving>(talk);
}

Next find_upstream(Talk& talk) {
  const policy::Host& host = talk.context.options.upstream->place.host;
  if (host.ip) return take_upstream(talk, {.addresses = {*host.ip}, .error = {}, .keep = {}});
  if (const auto kept = talk.context.lookups->ask(host.name, talk.id)) return take_upstream(talk, *kept);
  return std::make_unique<FindingUpstream>(talk);
}

Next take_addresses(Talk& talk, const Resolved& resolved) {
  const bool upstream = by_upstream(talk);
  // A name that only the upstream proxy knows is left to it.
  if (resolved.addresses.empty() && upstream) return find_upstream(talk);
  const policy::Destination& place = talk.asked.destination;
  if (resolved.addresses.empty())
    return refuse(talk, Problem{"dns",
                                {502, "dns_error", format("{} does not resolve: {}", to_string(place.host), resolved.error), ""},
                                SocksReply::kHostUnreachable});
  std::vector<policy::Ip> addresses;
  std::optional<policy::HostVerdict> worst;
  for (const policy::Ip& ip : resolved.addresses) {
    policy::HostVerdict verdict = may_dial(talk, ip);
    if (verdict.allowed()) addresses.insert(addresses.begin(), ip);
    else if (!worst) worst = std::move(verdict);
  }
  if (addresses.empty()) return refuse(talk, problem_of(*worst, place));
  return upstream ? find_upstream(talk) : dial_next(talk, std::move(addresses));
}

// Where it is was the caller's choice: its addresses are not judged.
Next take_upstream(Talk& talk, const Resolved& resolved) {
  if (resolved.addresses.empty())
    return refuse(talk, Problem{"upstream",
                                {502, "dns_error", "the upstream proxy does not resolve: " + resolved.error, ""},
                                SocksReply::kHostUnreachable});
  return dial_next(talk, {resolved.addresses.rbegin(), resolved.addresses.rend()});
}

Next dial_next(Talk& talk, std::vector<policy::Ip> addresses) {
  int error = ENETUNREACH;
  talk.drop_server();
  while (!addresses.empty()) {
    const policy::Ip ip = addresses.back();
    addresses.pop_back();
    const std::uint16_t port = by_upstream(talk) ? talk.context.options.upstream->place.port : talk.asked.destination.port;
    UniqueFd fd = dial(ip, port, error);
    if (!fd.valid()) continue;
    talk.record.address = policy::to_string(ip);
    talk.watch(fd.get(), Talk::kServer);
    // A near server has answered already: that saves a round through epoll.
    pollfd now{fd.get(), POLLOUT, 0};
    talk.server.writable = ::poll(&now, 1, 0) == 1;
    talk.server.fd = std::move(fd);
    return std::make_unique<Dialing>(talk, std::move(addresses));
  }
  return fail_dial(talk, error);
}

// The server is there, or another proxy that leads to it.
Next begin_passing(Talk& talk) {
  if (talk.protocol == Protocol::kHttps) return begin_server_tls(talk);
  if (talk.protocol == Protocol::kHttp) return begin_exchange(talk);
  if (talk.protocol == Protocol::kSocks) talk.client.out += socks_reply(SocksReply::kDone);
  if (talk.protocol == Protocol::kConnect) talk.client.out += "HTTP/1.1 200 Connection established\r\n\r\n";
  if (can_look(talk)) return begin_peek(talk);
  // Another port of a host that knows a value, say: what is in it can still be read where it is in the clear.
  if (talk.leaves() && !is_left_whole(talk))
    talk.guard.begin(talk.context.options.credentials.known_to(talk.asked.destination.host));
  else talk.guard.end();  // what an earlier request on this connection asked for
  return begin_tunnel(talk);
}

}  // namespace

Next decide(Talk& talk) {
  if (auto wrong = judge(talk)) return refuse(talk, *std::move(wrong));
  const auto wait = hold_heads(talk);
  if (!wait) return refuse(talk, heads_problem(talk));
  return *wait == std::chrono::milliseconds(0) ? find_place(talk) : std::make_unique<Held>(talk, *wait);
}

Next join_host(Talk& talk) {
  talk.asked.destination = talk.direct;
  talk.begin_record(Protocol::kHostPort);
  talk.record.rule = "network.host_ports";
  return dial_next(talk, {*talk.direct.host.ip});
}

// What listens inside may do so on 127.0.0.1 or, as Node's `localhost`, on ::1.
Next ask_inside(Talk& talk, bool v6) {
  if (!v6) {
    talk.asked.destination = talk.direct;
    talk.begin_record(Protocol::kPublished);
    talk.record.rule = "network.publish";
  }
  if (!talk.context.inner.ask(talk.id, v6)) return fail_dial(talk, ECONNREFUSED);
  return std::make_unique<AskingInside>(talk, v6);
}

}  // namespace belljar::egress
