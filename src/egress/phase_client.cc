// What the client says, until it is known what it wants: HTTP, SOCKS5, or names over TCP.
//
// The first byte tells the protocol apart: 5 is SOCKS5, 4 is SOCKS4, what may begin an HTTP method is HTTP,
// and anything else is refused at once. To wait for more would not help: a TLS client waits for our answer,
// as we would for the end of its head.
//
// A client that was redirected here (kDirect) believes that it speaks to its server, so it is sent nothing
// before its request is known to be HTTP. Where rules for single requests or limited mode apply, its first
// bytes must begin an HTTP request, or TLS that can be intercepted; elsewhere the destination alone decides,
// and its bytes are not looked at.
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "egress/context.h"
#include "egress/credentials.h"
#include "egress/culprit.h"
#include "egress/decision.h"
#include "egress/dns.h"
#include "egress/dns_server.h"
#include "egress/head_budget.h"
#include "egress/http.h"
#include "egress/phase.h"
#include "egress/proxy.h"
#include "egress/resolve.h"
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

// A client that has resolved the name by itself means the name.
void restore_name(ConnectionState& state) {
  auto& host = state.asked.destination.host;
  const bool number = state.client_kind == ClientKind::kProxy && host.ip && !host.ip->v6;
  const std::string* const name = number ? state.context.fakes.find_name(policy::ipv4_number(*host.ip)) : nullptr;
  if (name != nullptr) host = {.name = *name, .ip = {}};
}

// --- HTTP

// The head of a request: to a proxy, or to the place that is known already. Leaves `request`, and `head` as it may go on.
class Head final : public Phase {
 public:
  explicit Head(ConnectionState& state) : Phase(state, state.timeouts().head) {
    state.request.emplace(HttpReader::Kind::kRequest);
    if (state.stream != nullptr) state.request->allow_trailers();
  }
  Next go() override {
    if (state_.stream != nullptr && state_.stream->fault) return refuse_unread(*state_.stream->fault);
    HttpReader& request = *state_.request;
    client_.read(kMaxHead + 1);
    client_.in.erase(0, request.feed(client_.in));
    if (request.fault()) return refuse_unread(*request.fault());
    if (!request.head_done()) return wait_for_client();
    HttpFault fault;
    auto asked = read_request(request.head(), request.keeps_alive(), fault, state_.fixed_place(), client_.secure != nullptr);
    if (!asked) return refuse_unread(fault);
    asked_ = *std::move(asked);
    return judge_and_decide();
  }
  Next late() override {
    state_.begin_unread();
    return refuse(state_, Problem{"slow", {408, "http_request_error", "the request did not arrive in time", ""}});
  }

 private:
  Next refuse_unread(const HttpFault& fault) { return state_.begin_unread(), refuse(state_, fault); }
  Next judge_and_decide() {
    asked_.stream = state_.stream != nullptr;
    restore_name(state_);
    state_.begin_record(asked_.connect ? Protocol::kConnect : asked_.secure ? Protocol::kHttps : Protocol::kHttp);
    if (auto wrong = judge_message(state_)) return refuse(state_, *std::move(wrong));
    if (asked_.connect) return decide(state_);
    state_.head = state_.request->head();
    if (state_.is_limited()) std::erase_if(state_.head.fields, repeats_request);
    const Credentials& credentials = context_.options.credentials;
    state_.guard.begin(credentials.known_to(asked_.destination.host));
    if (auto wrong = judge_credentials(state_, state_.head)) return refuse(state_, *std::move(wrong));
    if (!credentials.empty()) (void)credentials.put_in(state_.head, asked_);
    return decide(state_);
  }
};

// --- SOCKS5: which ways to name oneself, the name where one is wanted, the request; all within the patience for a head

class SocksRequested final : public Phase {
 public:
  using Phase::Phase;
  Next go() override {
    client_.read(kMaxHead);
    SocksRequest request = read_socks_request(client_.in);
    if (request.parse == Parse::kMore) return wait_for_client();
    asked_ = {};
    asked_.destination = std::move(request.destination);
    restore_name(state_);
    state_.begin_record(Protocol::kSocks);
    if (request.parse == Parse::kBad)
      return refuse(state_, Problem{.reason = "malformed",
                                    .refusal = {400, "http_protocol_error", request.reason, ""},
                                    .socks = request.reply,
                                    .violation = !asked_.destination.host.name.empty(),
                                    .rule_key = "network.allowed_domains"});
    client_.in.erase(0, request.taken);
    if (state_.is_limited() && !can_intercept(state_))
      return refuse(state_, denied("method", "network.methods", "SOCKS5 is refused: network.methods is \"limited\"",
                                   "use http:// through the HTTP proxy"));
    return decide(state_);
  }
};

class SocksPasswordAsked final : public Phase {
 public:
  using Phase::Phase;
  Next go() override {
    client_.read(kMaxHead);
    const SocksPassword password = read_socks_password(client_.in);
    if (password.parse == Parse::kMore) return wait_for_client();
    const bool wrong = password.parse == Parse::kBad || wrong_credential(context_, password.credential);
    client_.out += wrong ? std::string("\x01\x01", 2) : std::string("\x01\0", 2);
    if (wrong) return close_politely(state_);
    client_.in.erase(0, password.taken);
    client_.flush();
    return std::make_unique<SocksRequested>(state_);
  }
};

class SocksGreeted final : public Phase {
 public:
  explicit SocksGreeted(ConnectionState& state) : Phase(state, state.timeouts().head) {}
  Next go() override {
    client_.read(kMaxHead);
    const SocksGreeting greeting = read_socks_greeting(client_.in);
    if (greeting.parse == Parse::kMore) return wait_for_client();
    const bool password = !context_.options.credential.empty() || !greeting.no_credential;
    if (greeting.parse == Parse::kBad || (password && !greeting.password)) {
      client_.out += std::string("\x05\xFF", 2);
      return close_politely(state_);
    }
    client_.in.erase(0, greeting.taken);
    client_.out += password ? std::string("\x05\x02", 2) : std::string("\x05\0", 2);
    client_.flush();
    return password ? Next(std::make_unique<SocksPasswordAsked>(state_)) : std::make_unique<SocksRequested>(state_);
  }
};

// --- the first byte says which

// A connection that is idle. Leaves its input as it is.
class FirstByte final : public Phase {
 public:
  explicit FirstByte(ConnectionState& state) : Phase(state, state.timeouts().idle_client) { state.request.reset(); }
  Next go() override {
    client_.read(kMaxHead + 1);
    const bool direct = state_.client_kind == ClientKind::kDirect && !state_.tunnel, to_proxy = !direct && !state_.tunnel;
    if (!direct && client_.in.starts_with("\r\n")) client_.in.erase(0, 2);  // old clients end a body so, RFC 9112 section 2.2
    if (client_.in.empty() || (!direct && client_.in == "\r")) return wait_for_client();
    const char first = client_.in[0];
    if (direct && (first < 'A' || first > 'Z' || begins_other(client_.in))) return handle_other();
    if (first == 4 && to_proxy) {  // SOCKS4 knows no names in its first form, and no reason in its answer
      client_.out = std::string("\0\x5B\0\0\0\0\0\0", 8);
      return close_politely(state_);
    }
    if (first == 5 && to_proxy) return std::make_unique<SocksGreeted>(state_);
    if (begins_request(first)) return begin_head(state_);
    state_.begin_unread();  // it would wait for our answer as we for the end of its head
    return refuse(state_, {400, "what is said is neither HTTP nor SOCKS5 (a proxy named as https:// speaks TLS; write http://)"});
  }

 private:
  // No HTTP, to a place that is open to HTTP alone: TLS may be looked into.
  Next handle_other() {
    asked_ = {};
    asked_.destination = state_.direct;
    state_.begin_record(Protocol::kDirect);
    if (client_.in[0] == kTlsHandshake && can_intercept(state_)) return decide(state_);
    return refuse(state_, denied("method", state_.is_limited() ? "network.methods" : "network.allowed_requests",
                                 "only HTTP may go there, since nobody can look into anything else",
                                 state_.is_limited() ? "use http://, or network.methods = \"full\""
                                                     : "--allow-domain opens the host wholly"));
  }
};

// --- names, over TCP (RFC 7766): each message has its length before it

class DnsStream final : public Phase {
 public:
  explicit DnsStream(ConnectionState& state) : Phase(state, state.timeouts().idle_client) {}
  Next go() override {
    while (!looking_up_) {
      client_.flush();
      client_.read(kPrefix + kMaxDns);
      if (client_.in.size() < kPrefix) return wait_for_client();
      const auto size =
          static_cast<std::size_t>(static_cast<unsigned char>(client_.in[0]) << 8 | static_cast<unsigned char>(client_.in[1]));
      if (size > kMaxDns) return give_up(state_);
      if (client_.in.size() < kPrefix + size) return wait_for_client();
      auto question = read_dns_question(std::string_view(client_.in).substr(kPrefix, size));
      client_.in.erase(0, kPrefix + size);
      if (!question) return give_up(state_);
      question_ = *std::move(question);
      ask();
    }
    return {};
  }
  Next on_resolved(const Resolved& resolved) override {
    if (looking_up_) answer(answer_question(context_, question_, resolved, asker()));
    return {};
  }
  Next late() override { return looking_up_ ? on_resolved(unanswered()) : give_up(state_); }

 private:
  static constexpr std::size_t kPrefix = 2;
  std::function<Culprit()> asker() {
    return [this] { return state_.culprit(); };
  }
  void ask() {
    if (const auto judged = judge_question(context_, question_, asker())) return answer(*judged);
    looking_up_ = true;
    state_.wait(std::chrono::minutes(1));
    if (const auto kept = context_.look_up(question_.name->name, state_.id)) (void)on_resolved(*kept);
  }
  void answer(const DnsAnswer& given) {
    const std::string message = dns_answer(question_, given);
    client_.out += static_cast<char>(message.size() >> 8);
    client_.out += static_cast<char>(message.size() & 0xFF);
    client_.out += message;
    client_.flush();
    looking_up_ = false;
    state_.wait(state_.timeouts().idle_client);
  }
  DnsQuestion question_;
  bool looking_up_ = false;
};

// What goes to a place that was meant directly has to be looked at.
bool is_inspected(const ConnectionState& state) {
  return state.is_limited() ||
         policy::decide_host(state.context.options.rules, state.direct).reason == policy::HostReason::kRequests;
}

}  // namespace

// Somebody who meant another place says nothing to us: either the place decides alone, or what is said has to be looked at.
Next arrive(ConnectionState& state) {
  if (state.client_kind == ClientKind::kDnsStream) return std::make_unique<DnsStream>(state);
  if (state.client_kind == ClientKind::kHostPort) return join_host(state);
  if (state.client_kind == ClientKind::kPublished) return ask_inside(state, false);
  if (state.client_kind == ClientKind::kProxy || is_inspected(state)) return begin_first_byte(state);
  state.asked.destination = state.direct;
  state.begin_record(Protocol::kDirect);
  return decide(state);
}

Next begin_first_byte(ConnectionState& state) { return std::make_unique<FirstByte>(state); }

Next begin_head(ConnectionState& state) { return std::make_unique<Head>(state); }

}  // namespace belljar::egress
