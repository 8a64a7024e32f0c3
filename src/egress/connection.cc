#include "egress/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/format.h"
#include "base/unique_fd.h"
#include "egress/context.h"
#include "egress/dns.h"
#include "egress/http.h"
#include "egress/names.h"
#include "egress/proxy.h"
#include "egress/socks.h"
#include "policy/domains.h"
#include "policy/host.h"
#include "policy/ip.h"

namespace belljar::egress {
namespace {

// A method is a token, RFC 9110 section 5.6.2.
bool begins_request(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_limited(const std::string& method) { return method == "GET" || method == "HEAD" || method == "OPTIONS"; }

}  // namespace

Connection::Connection(Context& context, std::uint64_t id, UniqueFd client, Way way, policy::Destination direct)
    : context_(context), id_(id), way_(way), direct_(std::move(direct)) {
  client_.fd = std::move(client);
  client_.readable = client_.writable = true;
  const int on = 1;
  ::setsockopt(client_.fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  watch(client_.fd.get(), kClient);
  enter(Phase::kArrived, context_.options.timeouts.idle_client);
}

Connection::~Connection() {
  note_unread_stream();
  if (recording_) end_record("ended");
}

void Connection::watch(int fd, Side side) const {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.u64 = id_ * 2 + side;
  ::epoll_ctl(context_.epoll, EPOLL_CTL_ADD, fd, &event);
}

void Connection::enter(Phase phase, std::chrono::milliseconds patience) {
  phase_ = phase;
  deadline_ = Clock::now() + patience;
}

void Connection::on_event(Side side, std::uint32_t events) {
  End& end = end_of(side);
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) end.readable = true;
  if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) end.writable = true;
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) end.hung = true;
}

bool Connection::progress() {
  if (stream_ != nullptr && stream_->gone && !over()) return give_up_stream();
  while (step()) {
  }
  if (starved_) return false;
  const bool more = phase_ == Phase::kTunnel && (up_->pump(context_.pipes, 0) || down_->pump(context_.pipes, 0));
  return more && !over();
}

bool Connection::step() {
  switch (phase_) {
    case Phase::kArrived:
      return arrive();
    case Phase::kQuestion:
      return question();
    case Phase::kFirstByte:
      return first_byte();
    case Phase::kHead:
      return read_head();
    case Phase::kSocksGreeting:
      return socks_greeting();
    case Phase::kSocksPassword:
      return socks_password();
    case Phase::kSocksRequest:
      return socks_request();
    case Phase::kDialing:
      return dialled();
    case Phase::kHandshake:
      return handshake();
    case Phase::kPeek:
      return peek();
    case Phase::kClientTls:
      return client_tls();
    case Phase::kServerTls:
      return server_tls();
    case Phase::kStreams:
      return carry_streams();
    case Phase::kExchange:
      return exchange();
    case Phase::kTunnel:
      return tunnel();
    case Phase::kBreaking:
      return breaking();
    case Phase::kClosing:
      return closing();
    case Phase::kHeld:
    case Phase::kResolving:
    case Phase::kAnswering:
    case Phase::kSocket:
    case Phase::kFindingUpstream:
    case Phase::kOver:
      return false;
  }
  return false;
}

// --- what the client says

// Somebody who meant another place says nothing to us: either the place decides alone, or what is said has to be looked at.
bool Connection::arrive() {
  if (way_ == Way::kDnsStream) return phase_ = Phase::kQuestion, true;
  if (way_ == Way::kHostPort) return join_host();
  if (way_ == Way::kPublished) return join_inside();
  if (way_ == Way::kProxy || is_inspected()) return phase_ = Phase::kFirstByte, true;
  asked_.destination = direct_;
  begin_record(Protocol::kDirect);
  return decide();
}

bool Connection::is_inspected() const {
  return context_.options.methods == Methods::kLimited ||
         policy::decide_host(context_.options.rules, direct_).reason == policy::HostReason::kRequests;
}

bool Connection::first_byte() {
  client_.read(kMaxHead + 1);
  if (const bool http = way_ != Way::kDirect || tunnel_; http) {
    if (client_.in.starts_with("\r\n")) client_.in.erase(0, 2);  // old clients end a body so, RFC 9112 section 2.2
    if (client_.in == "\r") return (client_.eof || client_.broken) && leave();
  }
  if (client_.in.empty()) return (client_.eof || client_.broken) && leave();
  const auto byte = static_cast<unsigned char>(client_.in[0]);
  if (way_ == Way::kDirect && !tunnel_ && (byte < 'A' || byte > 'Z' || begins_other(client_.in))) {
    asked_ = {};
    asked_.destination = direct_;
    begin_record(Protocol::kDirect);
    constexpr unsigned char kTlsHandshake = 22;
    if (byte == kTlsHandshake && can_look()) return decide();
    const bool limited = context_.options.methods == Methods::kLimited;
    return refuse(
        Problem{.reason = "method",
                .refusal = {403, "http_request_denied", "only HTTP may go there, since nobody can look into anything else",
                            limited ? "use http://, or network.methods = \"full\"" : "--allow-domain opens the host wholly"},
                .violation = true,
                .rule_key = limited ? "network.methods" : "network.allowed_requests"});
  }
  if (byte == 4 && !tunnel_) {  // SOCKS4 knows no names in its first form, and no reason in its answer
    client_.out = std::string("\0\x5B\0\0\0\0\0\0", 8);
    return close_politely();
  }
  request_.emplace(HttpReader::Kind::kRequest);
  const bool socks = byte == 5 && !tunnel_;
  if (!socks && !begins_request(client_.in[0])) {  // it would wait for our answer as we for the end of its head
    begin_unread();
    return refuse(HttpFault{400, "what is said is neither HTTP nor SOCKS5 (a proxy named as https:// speaks TLS; write http://)"});
  }
  enter(socks ? Phase::kSocksGreeting : Phase::kHead, context_.options.timeouts.head);
  return true;
}

// Where requests go whatever they say.
const policy::Destination* Connection::fixed_place() const {
  return tunnel_ ? &*tunnel_ : way_ == Way::kDirect ? &direct_ : nullptr;
}

// A client that has resolved the name by itself means the name.
void Connection::take_name() {
  auto& host = asked_.destination.host;
  const bool number = way_ == Way::kProxy && host.ip && !host.ip->v6;
  const std::string* const name = number ? context_.fakes.find_name(policy::ipv4_number(*host.ip)) : nullptr;
  if (name != nullptr) host = {.name = *name, .ip = {}};
}

// The record of a request that could not be read: nothing of the one before is in it.
void Connection::begin_unread() {
  asked_ = {};
  asked_.method = request_->head().method;
  if (const auto* const place = fixed_place()) asked_.destination = *place;
  const std::string dialled = dialled_ahead_ ? record_.address : "";
  begin_record(client_.secure != nullptr ? Protocol::kHttps : Protocol::kHttp);
  record_.address = dialled;
}

bool Connection::read_head() {
  if (stream_ != nullptr && stream_->fault) return begin_unread(), refuse(*stream_->fault);
  client_.read(kMaxHead + 1);
  const std::size_t taken = request_->feed(client_.in);
  client_.in.erase(0, taken);
  if (request_->fault()) return begin_unread(), refuse(*request_->fault());
  if (!request_->head_done()) return (client_.eof || client_.broken) && leave();
  HttpFault fault;
  auto asked = read_request(request_->head(), request_->keeps_alive(), fault, fixed_place(), client_.secure != nullptr);
  if (!asked) return begin_unread(), refuse(std::move(fault));
  asked_ = *std::move(asked);
  asked_.stream = stream_ != nullptr;
  take_name();
  const std::string dialled = dialled_ahead_ ? record_.address : "";
  begin_record(asked_.connect ? Protocol::kConnect : asked_.secure ? Protocol::kHttps : Protocol::kHttp);
  record_.address = dialled;
  if (way_ == Way::kProxy && !tunnel_ && wrong_credential(basic_credential(asked_.authorization).value_or("")))
    return refuse(Problem{.reason = "credential",
                          .refusal = {407, "http_request_denied", "the proxy credential of this sandbox is missing or wrong",
                                      "use the URL in HTTPS_PROXY as it is"}});
  const bool limited = context_.options.methods == Methods::kLimited;
  if (limited && (asked_.upgrade || (asked_.connect && !can_look())))
    return refuse(Problem{
        .reason = "method",
        .refusal = {403, "http_request_denied",
                    format("{} is refused: with network.methods = \"limited\" nothing may pass that cannot be looked at",
                           asked_.connect ? "CONNECT" : "an upgrade"),
                    asked_.connect ? "use http://, or network.methods = \"full\"" : "network.methods = \"full\" lets it pass"},
        .violation = true,
        .rule_key = "network.methods"});
  const auto other = std::ranges::find_if_not(asked_.other_methods, is_limited);
  const std::string& method = other == asked_.other_methods.end() ? asked_.method : *other;
  if (limited && !asked_.connect && (!is_limited(asked_.method) || !is_limited(method)))
    return refuse(Problem{.reason = "method",
                          .refusal = {405, "http_request_denied",
                                      format("the method {} is refused: network.methods is \"limited\"",
                                             escaped(is_limited(asked_.method) ? method : asked_.method)),
                                      "GET, HEAD and OPTIONS pass; network.methods = \"full\" opens the rest"},
                          .violation = true,
                          .rule_key = "network.methods"});
  if (asked_.connect) return decide();
  if (limited && !request_->done()) return refuse_body();
  return check_credentials() ? decide() : true;
}

// Also one that turns out to be empty: what it was for is not known before.
bool Connection::refuse_body() {
  return refuse(Problem{.reason = "body",
                        .refusal = {413, "http_request_denied",
                                    format("a {} with a body is refused: network.methods is \"limited\"", escaped(asked_.method)),
                                    "network.methods = \"full\" lets bodies pass"},
                        .violation = true,
                        .rule_key = "network.methods"});
}

bool Connection::wrong_credential(const std::string& given) const {
  const std::string& wanted = context_.options.credential;
  if (wanted.empty()) return false;
  unsigned differs = given.size() == wanted.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i) differs |= static_cast<unsigned>(given[i] ^ wanted[i % wanted.size()]);
  return differs != 0;
}

bool Connection::socks_greeting() {
  client_.read(kMaxHead);
  const SocksGreeting greeting = read_socks_greeting(client_.in);
  if (greeting.parse == Parse::kMore) return (client_.eof || client_.broken) && leave();
  const bool password = !context_.options.credential.empty() || !greeting.no_credential;
  if (greeting.parse == Parse::kBad || (password && !greeting.password)) {
    client_.out += std::string("\x05\xFF", 2);
    return close_politely();
  }
  client_.in.erase(0, greeting.taken);
  client_.out += password ? std::string("\x05\x02", 2) : std::string("\x05\0", 2);
  client_.flush();
  phase_ = password ? Phase::kSocksPassword : Phase::kSocksRequest;
  return true;
}

bool Connection::socks_password() {
  client_.read(kMaxHead);
  const SocksPassword password = read_socks_password(client_.in);
  if (password.parse == Parse::kMore) return (client_.eof || client_.broken) && leave();
  const bool wrong = password.parse == Parse::kBad || wrong_credential(password.credential);
  client_.out += wrong ? std::string("\x01\x01", 2) : std::string("\x01\0", 2);
  if (wrong) return close_politely();
  client_.in.erase(0, password.taken);
  client_.flush();
  phase_ = Phase::kSocksRequest;
  return true;
}

bool Connection::socks_request() {
  client_.read(kMaxHead);
  SocksRequest request = read_socks_request(client_.in);
  if (request.parse == Parse::kMore) return (client_.eof || client_.broken) && leave();
  asked_ = {};
  asked_.destination = std::move(request.destination);
  take_name();
  begin_record(Protocol::kSocks);
  if (request.parse == Parse::kBad)
    return refuse(Problem{.reason = "malformed",
                          .refusal = {400, "http_protocol_error", request.reason, ""},
                          .socks = request.reply,
                          .violation = !asked_.destination.host.name.empty(),
                          .rule_key = "network.allowed_domains"});
  client_.in.erase(0, request.taken);
  if (context_.options.methods == Methods::kLimited && !can_look())
    return refuse(Problem{.reason = "method",
                          .refusal = {403, "http_request_denied", "SOCKS5 is refused: network.methods is \"limited\"",
                                      "use http:// through the HTTP proxy"},
                          .violation = true,
                          .rule_key = "network.methods"});
  return decide();
}

// --- names, over TCP (RFC 7766): each message has its length before it

bool Connection::question() {
  constexpr std::size_t kPrefix = 2;
  client_.flush();
  client_.read(kPrefix + kMaxDns);
  if (client_.in.size() < kPrefix) return (client_.eof || client_.broken) && leave();
  const auto size =
      static_cast<std::size_t>(static_cast<unsigned char>(client_.in[0]) << 8 | static_cast<unsigned char>(client_.in[1]));
  if (size > kMaxDns) return give_up();
  if (client_.in.size() < kPrefix + size) return (client_.eof || client_.broken) && leave();
  auto asked = read_dns_question(std::string_view(client_.in).substr(kPrefix, size));
  client_.in.erase(0, kPrefix + size);
  if (!asked) return give_up();
  asked_name_ = *std::move(asked);
  const auto judged = judge_question(context_, asked_name_, [this] { return culprit(); });
  if (judged) return answer(*judged);
  enter(Phase::kAnswering, std::chrono::minutes(1));
  const auto kept = context_.look_up(asked_name_.name->name, id_);
  return kept && answer_resolved(*kept);
}

bool Connection::answer_resolved(const Resolved& resolved) {
  return answer(answer_question(context_, asked_name_, resolved, [this] { return culprit(); }));
}

bool Connection::answer(const DnsAnswer& answer) {
  const std::string message = dns_answer(asked_name_, answer);
  client_.out += static_cast<char>(message.size() >> 8);
  client_.out += static_cast<char>(message.size() & 0xFF);
  client_.out += message;
  client_.flush();
  enter(Phase::kQuestion, context_.options.timeouts.idle_client);
  return true;
}

}  // namespace belljar::egress
