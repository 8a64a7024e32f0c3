// The way to the server: the decision, the dial, and what then passes between the two ends.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/unique_fd.h"
#include "egress/connection.h"
#include "egress/http.h"
#include "egress/proxy.h"
#include "egress/resolve.h"
#include "egress/socks.h"
#include "egress/upstream.h"
#include "policy/domains.h"
#include "policy/host.h"
#include "policy/ip.h"

namespace belljar::egress {
namespace {

constexpr std::size_t kWindow = std::size_t{256} * 1024;  // bytes held for a slow peer while a request is passed on
constexpr int kBudget = 16;                               // bursts of one tunnel before others get a turn
constexpr std::uint64_t kBurst = 1U << 20;                // of one message between two looks at what is left of limits.egress_bytes

// As far as it came.
bool is_http(std::string_view answer) {
  constexpr std::string_view kVersion = "HTTP/1.";
  return kVersion.starts_with(answer.substr(0, kVersion.size()));
}

UniqueFd dial(const policy::Ip& ip, std::uint16_t port, int& error) {
  UniqueFd fd(::socket(ip.v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return error = errno, UniqueFd();
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  sockaddr_in four{};
  sockaddr_in6 six{};
  four.sin_family = AF_INET;
  four.sin_port = six.sin6_port = htons(port);
  six.sin6_family = AF_INET6;
  std::memcpy(&four.sin_addr, ip.bytes.data(), 4);
  std::memcpy(&six.sin6_addr, ip.bytes.data(), 16);
  const auto* address = ip.v6 ? reinterpret_cast<const sockaddr*>(&six) : reinterpret_cast<const sockaddr*>(&four);
  const socklen_t size = ip.v6 ? sizeof six : sizeof four;
  if (::connect(fd.get(), address, size) != 0 && errno != EINPROGRESS) return error = errno, UniqueFd();
  return fd;
}

SocksReply socks_of(int error) {
  switch (error) {
    case ECONNREFUSED:
      return SocksReply::kRefused;
    case ENETUNREACH:
      return SocksReply::kNetworkUnreachable;
    case EHOSTUNREACH:
      return SocksReply::kHostUnreachable;
    case ETIMEDOUT:
      return SocksReply::kTimedOut;
    default:
      return SocksReply::kFailed;
  }
}

}  // namespace

// --- may it

bool Connection::decide() {
  const policy::HostVerdict verdict = policy::decide_host(context_.options.rules, asked_.destination);
  record_.rule = verdict.rule;
  if (!verdict.allowed()) return refuse(verdict);
  if (context_.passed > context_.options.max_bytes) return refuse_spent();
  const bool carrier = protocol_ != Protocol::kHttp && protocol_ != Protocol::kHttps;  // of requests that are judged one by one
  const bool judged = verdict.reason == policy::HostReason::kRequests && !(carrier && can_look());
  if (judged && !judge_request()) return true;
  if (context_.options.methods != Methods::kLimited) return find_place();
  const auto [budget, fresh] = context_.heads.try_emplace(record_.rule, context_.options.max_heads);
  // Which port is chosen says something as well, whatever is sent there.
  static const HttpHead kCarrier{.method = "CONNECT"};
  const auto wait = budget->second.take(to_string(asked_.destination), carrier ? kCarrier : request_->head(), Clock::now());
  if (!wait) return refuse_heads();
  if (*wait == std::chrono::milliseconds(0)) return find_place();
  enter(Phase::kHeld, *wait);
  return false;
}

bool Connection::refuse_heads() {
  return refuse(Problem{.reason = "egress_heads",
                        .refusal = {429, "http_request_denied",
                                    format("URLs and fields have used up the {} a minute that may go to the hosts of {}",
                                           belljar::to_string(Bytes{context_.options.max_heads}), record_.rule),
                                    "wait, or raise limits.egress_heads"},
                        .violation = true,
                        .rule_key = "limits.egress_heads"});
}

// Where it is.
bool Connection::find_place() {
  // The rules may be others since it was dialled: of its address, too.
  if (std::exchange(dialled_ahead_, false) && server_waits() && !find_refusal()) return begin_passing();
  enter(Phase::kResolving, std::chrono::minutes(1));
  if (asked_.destination.host.ip) return take_addresses({.addresses = {*asked_.destination.host.ip}, .error = {}, .keep = {}});
  if (!context_.may_name(asked_.destination.host.name)) return refuse_heads();
  const auto kept = context_.look_up(asked_.destination.host.name, id_);
  return kept && take_addresses(*kept);
}

// True: this request may go on.
bool Connection::judge_request() {
  const bool seen = (protocol_ == Protocol::kHttp || protocol_ == Protocol::kHttps) && !asked_.upgrade;
  const policy::RequestRule* const rule = seen ? find_request_rule() : nullptr;
  if (rule != nullptr) return record_.rule = rule->text, true;
  const bool overridden = !asked_.other_methods.empty() || !asked_.other_paths.empty();
  const std::string what = !seen ? "what cannot be looked into is"
                           : overridden
                               ? "what fields ask for instead (X-HTTP-Method-Override, X-Original-URL) or the request itself is"
                               : format("{} of that path is", escaped(asked_.method));
  return refuse(Problem{.reason = "request",
                        .refusal = {403, "http_request_denied",
                                    format("{} not among the requests that may go to {}", what, to_string(asked_.destination)),
                                    seen             ? "network.allowed_requests names them"
                                    : asked_.upgrade ? "--allow-domain opens the host wholly"
                                                     : "use http://, or --allow-domain"},
                        .violation = true,
                        .rule_key = "network.allowed_requests",
                        .rule = record_.rule}),
         false;
}

// The rule that lets the request through in every way that a server may read it; nullptr where one of them is not let through.
const policy::RequestRule* Connection::find_request_rule() const {
  const auto& rules = context_.options.rules;
  const auto find = [&](const std::string& method, const std::string& path) {
    return policy::find_request(rules, asked_.destination, method, path);
  };
  const auto found = [&](const std::string& method) {
    return find(method, asked_.path) != nullptr &&
           std::ranges::all_of(asked_.other_paths, [&](const std::string& path) { return find(method, path) != nullptr; });
  };
  if (!found(asked_.method) || !std::ranges::all_of(asked_.other_methods, found)) return nullptr;
  return find(asked_.method, asked_.path);
}

bool Connection::join_host() {
  asked_.destination = direct_;
  begin_record(Protocol::kHostPort);
  record_.rule = "network.host_ports";
  addresses_ = {*direct_.host.ip};
  return dial_next();
}

// What listens inside may do so on 127.0.0.1 or, as Node's `localhost`, on ::1.
bool Connection::join_inside() {
  if (!recording_) {
    asked_.destination = direct_;
    begin_record(Protocol::kPublished);
    record_.rule = "network.publish";
  }
  enter(Phase::kSocket, context_.options.timeouts.dial);
  return !context_.inner.ask(id_, inside_v6_) && fail_dial(ECONNREFUSED);
}

bool Connection::connect_inside(const UniqueFd& socket) const {
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(direct_.port);
  four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(direct_.port);
  six.sin6_addr = IN6ADDR_LOOPBACK_INIT;
  const auto* address = inside_v6_ ? reinterpret_cast<const sockaddr*>(&six) : reinterpret_cast<const sockaddr*>(&four);
  return ::connect(socket.get(), address, inside_v6_ ? sizeof six : sizeof four) == 0 || errno == EINPROGRESS;
}

void Connection::on_socket(UniqueFd socket) {
  if (phase_ != Phase::kSocket) return;
  drop_server();
  if (!socket.valid() || !connect_inside(socket)) {
    if (std::exchange(inside_v6_, true)) (void)fail_dial(ECONNREFUSED);
    else (void)join_inside();
    return;
  }
  watch(socket.get(), kServer);
  server_.fd = std::move(socket);
  enter(Phase::kDialing, context_.options.timeouts.dial);
}

void Connection::on_resolved(const Resolved& resolved) {
  if (phase_ == Phase::kResolving) return (void)take_addresses(resolved);
  if (phase_ == Phase::kFindingUpstream) return (void)take_upstream(resolved);
  if (phase_ == Phase::kAnswering) (void)answer_resolved(resolved);
}

bool Connection::by_upstream() const {
  const auto& upstream = context_.options.upstream;
  return upstream && leaves() && !leaves_without(*upstream, asked_.destination);
}

bool Connection::find_upstream() {
  const policy::Host& host = context_.options.upstream->place.host;
  enter(Phase::kFindingUpstream, std::chrono::minutes(1));
  if (host.ip) return take_upstream({.addresses = {*host.ip}, .error = {}, .keep = {}});
  const auto kept = context_.lookups->ask(host.name, id_);
  return kept && take_upstream(*kept);
}

// Where it is was the caller's choice: its addresses are not judged.
bool Connection::take_upstream(const Resolved& resolved) {
  if (resolved.addresses.empty())
    return refuse(Problem{.reason = "upstream",
                          .refusal = {502, "dns_error", "the upstream proxy does not resolve: " + resolved.error, ""},
                          .socks = SocksReply::kHostUnreachable});
  addresses_.assign(resolved.addresses.rbegin(), resolved.addresses.rend());
  return dial_next();
}

bool Connection::handshake() {
  server_.flush();
  server_.read(kMaxHead);
  const auto state = handshake_->feed(server_.in, server_.out);
  if (state == UpstreamHandshake::State::kDone) return handshake_.reset(), begin_passing();
  server_.flush();
  const bool ended = server_.eof || server_.broken;
  if (state == UpstreamHandshake::State::kMore && !ended) return client_.hung && give_up();
  const std::string why = state == UpstreamHandshake::State::kFailed ? handshake_->reason() : "it closed the connection";
  return refuse(Problem{.reason = "upstream",
                        .refusal = {502, "http_request_error",
                                    format("the upstream proxy does not lead to {}: {}", to_string(asked_.destination), why), ""}});
}

bool Connection::take_addresses(const Resolved& resolved) {
  const bool upstream = by_upstream();
  // A name that only the upstream proxy knows is left to it.
  if (resolved.addresses.empty() && upstream) return find_upstream();
  if (resolved.addresses.empty())
    return refuse(Problem{
        .reason = "dns",
        .refusal = {502, "dns_error", format("{} does not resolve: {}", to_string(asked_.destination.host), resolved.error), ""},
        .socks = SocksReply::kHostUnreachable});
  addresses_.clear();
  std::optional<policy::HostVerdict> worst;
  for (const policy::Ip& ip : resolved.addresses) {
    policy::HostVerdict verdict = policy::decide_address(context_.options.rules, asked_.destination, ip, context_.is_own(ip));
    if (verdict.allowed()) addresses_.insert(addresses_.begin(), ip);
    else if (!worst) worst = std::move(verdict);
  }
  if (addresses_.empty()) return refuse(*worst);
  return upstream ? find_upstream() : dial_next();
}

bool Connection::dial_next() {
  int error = ENETUNREACH;
  drop_server();
  while (!addresses_.empty()) {
    const policy::Ip ip = addresses_.back();
    addresses_.pop_back();
    const std::uint16_t port = by_upstream() ? context_.options.upstream->place.port : asked_.destination.port;
    UniqueFd fd = dial(ip, port, error);
    if (!fd.valid()) continue;
    record_.address = policy::to_string(ip);
    watch(fd.get(), kServer);
    server_.fd = std::move(fd);
    enter(Phase::kDialing, context_.options.timeouts.dial);
    // A near server has answered already: that saves a round through epoll.
    pollfd now{server_.fd.get(), POLLOUT, 0};
    server_.writable = ::poll(&now, 1, 0) == 1;
    return server_.writable;
  }
  return fail_dial(error);
}

bool Connection::dialled() {
  if (client_.hung) return give_up();
  if (!server_.writable) return false;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(server_.fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0 && way_ == Way::kPublished && !std::exchange(inside_v6_, true)) return join_inside();
  if (error != 0) return addresses_.empty() ? fail_dial(error) : dial_next();
  server_.hung = false;
  const bool asks =
      by_upstream() && (protocol_ != Protocol::kHttp || tunnel_ || context_.options.upstream->kind == Upstream::Kind::kSocks5);
  if (!asks) return begin_passing();
  handshake_.emplace(*context_.options.upstream, asked_.destination);
  server_.out = handshake_->begin();
  enter(Phase::kHandshake, context_.options.timeouts.dial);
  return true;
}

bool Connection::begin_passing() {
  if (protocol_ == Protocol::kHttps) return begin_server_tls();
  if (protocol_ == Protocol::kHttp) return begin_exchange();
  if (protocol_ == Protocol::kSocks) client_.out += socks_reply(SocksReply::kDone);
  if (protocol_ == Protocol::kConnect) client_.out += "HTTP/1.1 200 Connection established\r\n\r\n";
  if (!looks_into()) {
    stop_guarding();  // what an earlier request on this connection asked for
    // Another port of a host that knows a value, say: what is in it can still be read where it is in the clear.
    if (leaves() && !is_left_whole()) guard_answers(asked_.destination);
    return begin_tunnel();
  }
  tunnel_ = asked_.destination;
  dialled_ahead_ = true;
  enter(Phase::kPeek, context_.options.timeouts.idle_client);
  return true;
}

bool Connection::fail_dial(int error) {
  const bool upstream = by_upstream();
  const policy::Destination& place = upstream ? context_.options.upstream->place : asked_.destination;
  const char* const type = error == ECONNREFUSED ? "connection_refused"
                           : error == ETIMEDOUT  ? "connection_timeout"
                                                 : "destination_unavailable";
  return refuse(Problem{.reason = upstream ? "upstream" : "dial",
                        .refusal = {error == ETIMEDOUT ? 504 : 502, type,
                                    format("cannot connect to {}{}: {}", upstream ? "the upstream proxy " : "", to_string(place),
                                           std::strerror(error)),
                                    ""},  // NOLINT(concurrency-mt-unsafe)
                        .socks = socks_of(error)});
}

// --- a request that is passed on

bool Connection::asks_upstream() const {
  return by_upstream() && !asked_.secure && !tunnel_ && context_.options.upstream->kind == Upstream::Kind::kHttp;
}

bool Connection::begin_exchange() {
  server_.out = forwarded_head(head_, asked_, asks_upstream() ? &context_.options.upstream->credential : nullptr);
  begin_answer();
  keep_client_ = false;
  enter(Phase::kExchange, context_.options.timeouts.answer);
  return true;
}

bool Connection::exchange() {
  const std::uint64_t before = record_.bytes_sent + record_.bytes_received;
  if (starved_ = !context_.has_credit(); starved_) return false;
  if (!pass_request()) return true;
  if (!pass_answer()) return true;
  if (client_.broken) return give_up();
  if (!spend()) return refuse_spent();
  const std::uint64_t passed = record_.bytes_sent + record_.bytes_received - before;
  if (passed != 0) deadline_ = Clock::now() + context_.options.timeouts.answer;
  if (answer_->done() && client_.out.empty()) return end_exchange();
  if (starved_) return false;
  return passed >= kBurst || server_.may_seal();  // stopped to be counted, or the server takes more since it was read
}

// With a rate, one piece after the other; else a burst, so that a limit of bytes is seen on the way of a long message.
bool Connection::is_enough(std::uint64_t passed) {
  constexpr std::uint64_t kPiece = 65536;
  if (context_.options.max_rate != 0 && passed >= kPiece) starved_ = true;
  return starved_ || passed >= kBurst;
}

// False: the phase is another one now.
bool Connection::pass_request() {
  const std::uint64_t before = record_.bytes_sent;
  for (;;) {
    record_.bytes_sent += server_.flush();
    if (is_enough(record_.bytes_sent - before)) return true;
    if (request_->done() || server_.out.size() >= kWindow) return true;
    client_.read(kWindow);
    const std::size_t taken = request_->feed(client_.in);
    if (request_->fault()) return refuse(*request_->fault()), false;
    if (!check_trailers()) return false;
    if (taken == 0) {
      if (!client_.eof && !client_.broken) return true;
      return give_up(), false;
    }
    server_.out.append(client_.in, 0, taken);
    client_.in.erase(0, taken);
  }
}

bool Connection::pass_answer() {
  const std::uint64_t before = record_.bytes_received;
  for (;;) {
    record_.bytes_received += client_.flush();
    if (is_enough(record_.bytes_received - before)) return true;
    if (answer_->done()) return true;
    // Its answer waits for the client; what it takes of the request need not.
    if (client_.out.size() >= kWindow) return server_.read(0), true;
    server_.read(kWindow);
    const bool had_head = answer_->head_done();
    const std::size_t taken = answer_->feed(server_.in);
    const bool ended = taken == 0 && (server_.eof || server_.broken);
    if (answer_->fault() || (ended && (((server_.cut || server_.broken) && answer_->needs_end()) || !answer_->end()))) {
      if (had_head) {  // cut short, and the client must see that it was
        // Without a length or the server's word that this was all, anybody on the way may have cut it (RFC 9112 section 9.8).
        if (!answer_->fault() && answer_->needs_end() && server_.cut && !server_.broken) broken_as_ = "tls-cut";
        return server_.in.clear(), begin_breaking(), false;
      }
      const bool by_tls = server_.secure != nullptr && server_.secure->broken();  // an alert: it wants a client certificate, say
      const std::string why = by_tls                ? server_.secure->fault().text
                              : answer_->fault()    ? answer_->fault()->reason
                              : server_.in.empty()  ? "it closed the connection without an answer"
                              : is_http(server_.in) ? "it closed the connection before the end of the head"
                                                    : "what it sent is something else";
      record_.bytes_received += server_.in.size();
      return refuse(Problem{.reason = "server",
                            .refusal = {502, "http_protocol_error",
                                        format("{} gave no HTTP answer: {}", to_string(asked_.destination), why), ""}}),
             false;
    }
    if (taken == 0 && !ended) return true;
    if (!had_head && answer_->head_done()) {
      server_.in.erase(0, taken);
      if (!answer_head()) return false;
      continue;
    }
    deliver(std::string_view(server_.in).substr(0, taken));
    server_.in.erase(0, taken);
    if (ended) return true;
  }
}

bool Connection::answer_head() {
  if (!check_answer() || !check_coding()) return false;
  HttpHead head = answer_->head();
  constexpr int kProxyAuthentication = 407;  // asked of us, by the upstream proxy itself
  if (head.status == kProxyAuthentication && asks_upstream())
    return refuse(Problem{
               .reason = "upstream",
               .refusal = {502, "http_request_error",
                           format("the upstream proxy {} refuses: {}", to_string(context_.options.upstream->place), head.status),
                           "network.upstream_proxy names user and password"}}),
           false;
  restore(head);
  if (head.status == 101) {
    if (!asked_.upgrade)
      return refuse(Problem{.reason = "server",
                            .refusal = {502, "http_protocol_error", "the server changes the protocol unasked", ""}}),
             false;
    client_.out += returned_head(head, false, true);
    record_.bytes_received += client_.out.size();  // a tunnel counts what comes from here on
    if (restorer_) frames_.emplace(*restorer_);
    return begin_tunnel(), false;
  }
  // With another coding than chunked the body ends with the connection, whatever its length says (RFC 9112 section 6.3).
  keep_client_ = asked_.keep_alive && head.version == 11 && !answer_->needs_end() && !asked_.stream && !is_transfer_coded(head);
  client_.out += returned_head(head, keep_client_, false);
  if (head.status < 200) begin_answer();
  return true;
}

bool Connection::end_exchange() {
  end_record("allowed");
  drop_server();
  if (!keep_client_ || !request_->done()) return close_politely();
  request_.emplace(HttpReader::Kind::kRequest);
  enter(Phase::kFirstByte, context_.options.timeouts.idle_client);
  return true;
}

bool Connection::spend() {
  const std::uint64_t tunnelled = (up_ ? up_->bytes() : 0) + (down_ ? down_->bytes() : 0);
  const std::uint64_t now = record_.bytes_sent + record_.bytes_received + tunnelled;
  return context_.spend(now - std::exchange(spent_, now));
}

// --- a tunnel

bool Connection::begin_tunnel() {
  server_.out += std::exchange(client_.in, {});
  record_.bytes_received += server_.in.size();
  client_.out += restorer_ ? filter(std::exchange(server_.in, {}), false) : std::exchange(server_.in, {});
  record_.bytes_sent += server_.out.size();
  up_.emplace(client_, server_);
  down_.emplace(server_, client_);
  if (restorer_) {
    down_->set_filter([this](const std::string& bytes, bool last) { return filter(bytes, last && phase_ != Phase::kBreaking); });
  }
  enter(Phase::kTunnel, context_.options.timeouts.tunnel);
  return true;
}

bool Connection::tunnel() {
  const std::uint64_t before = up_->bytes() + down_->bytes();
  if (starved_ = !context_.has_credit(); starved_) return false;
  const int budget = context_.options.max_rate == 0 ? kBudget : 1;
  const bool more_up = up_->pump(context_.pipes, budget), more_down = down_->pump(context_.pipes, budget);
  starved_ = context_.options.max_rate != 0 && (more_up || more_down);
  if (!spend()) return refuse_spent();
  if (frames_ && frames_->broken()) return broken_as_ = "server", begin_breaking();
  if (client_.broken) return give_up();
  if (server_.broken) return begin_breaking();
  if (up_->done() && down_->done()) {
    end_record("allowed");
    phase_ = Phase::kOver;
    return false;
  }
  if (up_->done() && client_.hung) return give_up();
  if (down_->done() && server_.hung) return begin_breaking();
  if (up_->bytes() + down_->bytes() != before || more_up || more_down) {
    const auto& timeouts = context_.options.timeouts;
    deadline_ = Clock::now() + (up_->done() || down_->done() ? timeouts.half_closed : timeouts.tunnel);
  }
  return false;
}

}  // namespace belljar::egress
