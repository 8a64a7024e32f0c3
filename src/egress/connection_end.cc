// Refusals, records, and how a connection is left.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/exec_result.h"
#include "egress/connection.h"
#include "egress/culprit.h"
#include "egress/http.h"
#include "egress/socks.h"
#include "policy/domains.h"
#include "policy/host.h"
#include "policy/ip.h"

namespace belljar::egress {
namespace {

constexpr std::size_t kReadAtOnce = std::size_t{256} * 1024;
constexpr int kDrops = 16;
using policy::kHttpPort;  // A client that meant another place can read our reason there; elsewhere it sees a reset

}  // namespace

// --- the end

bool Connection::refuse(HttpFault fault) {
  return refuse(Problem{.reason = "malformed", .refusal = {fault.status, "http_protocol_error", std::move(fault.reason), ""}});
}

Connection::Problem Connection::problem_of(const policy::HostVerdict& verdict) const {
  using policy::HostReason;
  const bool address = verdict.reason == HostReason::kNotPublic || verdict.reason == HostReason::kOwnAddress;
  const bool request = verdict.reason == HostReason::kRequests;
  return {.reason = request ? "request" : std::string(policy::to_string(verdict.reason)),
          .refusal = {403, address ? "destination_ip_prohibited" : "http_request_denied",
                      policy::explain_verdict(verdict, asked_.destination), policy::next_step(verdict, asked_.destination)},
          .violation = true,
          .rule_key = request                                 ? "network.allowed_requests"
                      : verdict.reason == HostReason::kDenied ? "network.denied_domains"
                                                              : "network.allowed_domains",
          .rule = verdict.rule};
}

bool Connection::refuse(const policy::HostVerdict& verdict) { return refuse(problem_of(verdict)); }

// The limit of bytes: what is under way is cut, since it is known to be more than may pass.
bool Connection::refuse_spent() {
  Problem problem{
      .reason = "egress_bytes",
      .refusal = {403, "http_request_denied", "the sandbox has used up its bytes of egress", "raise limits.egress_bytes"},
      .violation = true,
      .rule_key = "limits.egress_bytes"};
  const bool begun = phase_ == Phase::kTunnel || phase_ == Phase::kBreaking || (phase_ == Phase::kExchange && answer_->head_done());
  if (!begun) return refuse(std::move(problem));
  note_violation(problem);
  end_record("egress_bytes");
  return give_up();
}

// What the rules say of what this connection is about now: of its host, of the address it has, of the request under way.
std::optional<policy::HostVerdict> Connection::find_refusal() {
  const auto& rules = context_.options.rules;
  policy::HostVerdict verdict = policy::decide_host(rules, asked_.destination);
  if (!verdict.allowed()) return verdict;
  const auto address = by_upstream() ? std::nullopt : policy::parse_ip(record_.address);
  if (address) {
    policy::HostVerdict there = policy::decide_address(rules, asked_.destination, *address, context_.is_own(*address));
    if (!there.allowed()) return there;
  }
  if (verdict.reason != policy::HostReason::kRequests) return {};
  if (phase_ == Phase::kTunnel) return verdict;  // nobody looks into it
  const bool carrier = protocol_ != Protocol::kHttp && protocol_ != Protocol::kHttps;
  if (carrier) return can_look() ? std::nullopt : std::optional(verdict);
  const bool passes = !asked_.upgrade && find_request_rule() != nullptr;
  return passes ? std::nullopt : std::optional(verdict);
}

// Requests that are still to come are judged anew anyhow.
void Connection::on_rules() {
  if (!recording_ || !leaves() || phase_ == Phase::kClosing || phase_ == Phase::kOver) return;
  // Those that are still to be tried were checked by the rules before.
  if (!by_upstream())
    std::erase_if(addresses_, [this](const policy::Ip& ip) {
      return !policy::decide_address(context_.options.rules, asked_.destination, ip, context_.is_own(ip)).allowed();
    });
  const auto verdict = find_refusal();
  if (!verdict) return;
  // Its client is done with it, and nothing was refused to anybody: a command whose hosts are closed at its end.
  if (client_.eof || client_.hung || client_.broken) return (void)give_up();
  // The client has had its 200, or the head of an answer.
  const bool begun = phase_ == Phase::kTunnel || phase_ == Phase::kBreaking || phase_ == Phase::kPeek ||
                     phase_ == Phase::kClientTls || phase_ == Phase::kStreams || (tunnel_ && protocol_ == Protocol::kSocks) ||
                     (phase_ == Phase::kExchange && answer_->head_done());
  if (!begun) return (void)refuse(*verdict);
  Problem problem = problem_of(*verdict);
  problem.refusal.reason = "the rules changed: " + problem.refusal.reason;
  note_violation(problem);
  record_.rule = problem.rule;
  end_record("rules");
  (void)give_up();
}

bool Connection::refuse(Problem problem) {
  drop_server();
  if (!problem.rule.empty()) record_.rule = problem.rule;
  if (problem.violation) note_violation(problem);
  end_record(std::move(problem.reason));
  const bool speechless = (protocol_ == Protocol::kDirect && asked_.destination.port != kHttpPort) ||
                          protocol_ == Protocol::kHostPort || protocol_ == Protocol::kPublished;
  if (speechless) return give_up();
  if (protocol_ == Protocol::kSocks) client_.out += socks_reply(problem.socks);
  else client_.out += refusal_text(problem.refusal, asked_.method == "HEAD", false);
  return close_politely();
}

void Connection::note_violation(const Problem& problem) {
  Violation violation;
  violation.operation = "egress";
  violation.target = to_string(asked_.destination);
  violation.rule = problem.rule_key;
  violation.origin = context_.origin_of(problem.rule_key);
  const Culprit by = culprit();
  violation.pid = record_.pid = by.pid;
  violation.program = record_.program = by.program;
  violation.errnum = EACCES;
  violation.allowed = problem.refusal.reason + (problem.refusal.next.empty() ? "" : "; " + problem.refusal.next);
  context_.add(std::move(violation));
}

// What is still to be written goes out; what the client still sends is read and dropped, or the kernel would answer it with a reset
// that overtakes our words.
bool Connection::close_politely() {
  enter(Phase::kClosing, stream_ != nullptr ? context_.options.timeouts.answer : context_.options.timeouts.linger);
  return true;
}

// The client said all it had to say, and that was no request.
bool Connection::leave() {
  end_record("ended");
  return client_.broken ? give_up() : close_politely();
}

bool Connection::closing() {
  client_.flush();
  if (client_.out.empty()) client_.shut_down();
  if (stream_ != nullptr) return close_stream();
  client_.in.clear();
  for (int round = 0; round < kDrops && client_.read(kReadAtOnce) > 0; ++round) client_.in.clear();
  const bool finished = client_.broken || (client_.eof && client_.out.empty());
  if (finished) phase_ = Phase::kOver;
  return false;
}

// The server broke off. The client is to see that, but behind what the server had said: a reset drops what is still queued. What
// may become a value stays back: half of one is no answer that ended so.
bool Connection::begin_breaking() {
  held_ = SIZE_MAX;
  enter(Phase::kBreaking, context_.options.timeouts.answer);
  return true;
}

bool Connection::breaking() {
  if (starved_ = !context_.has_credit(); starved_) return false;
  const bool all = deliver_rest();
  if (!spend()) return refuse_spent();
  // A client that sends all before it reads must get there; what it sends is for nobody.
  if (stream_ == nullptr) {
    client_.in.clear();
    for (int round = 0; round < kDrops && client_.read(kReadAtOnce) > 0; ++round) client_.in.clear();
  }
  const std::size_t queued = stream_ != nullptr ? stream_->held() : client_.count_unsent();
  const std::size_t waiting = client_.out.size() + queued + server_.in.size();
  if (client_.broken || (all && waiting == 0)) return give_up();
  if (!all && client_.out.empty() && client_.writable) return true;
  // No event says that the queue is empty.
  constexpr std::chrono::milliseconds kSoon{5}, kLate{1000};
  const bool taken = waiting < std::exchange(held_, waiting);
  if (taken) deadline_ = Clock::now() + context_.options.timeouts.answer;
  pause_ = taken ? kSoon : std::min(2 * pause_, kLate);
  silence_ = Clock::now() + pause_;
  return false;
}

// True: all that the server had said is in the client's socket, or in what it waits for.
bool Connection::deliver_rest() {
  if (!down_) {
    record_.bytes_received += client_.flush();
    return client_.out.empty();
  }
  constexpr std::uint64_t kPiece = 65536;
  const auto& options = context_.options;
  const std::uint64_t left = options.max_bytes - std::min(options.max_bytes, context_.passed);
  const std::uint64_t most = options.max_rate != 0 ? kPiece : kReadAtOnce;
  return down_->deliver_rest(std::min(most, left) + 1);  // one byte too many ends it with the reason
}

bool Connection::give_up() {
  end_record(server_.fd.valid() ? broken_as_ : "ended");
  client_.abort();
  server_.abort();
  phase_ = Phase::kOver;
  return false;
}

void Connection::drop_server() { server_ = End{}; }

void Connection::on_deadline() {
  if (Clock::now() < deadline_) return give_early();
  switch (phase_) {
    case Phase::kDialing:
      if (addresses_.empty()) (void)fail_dial(ETIMEDOUT);
      else (void)dial_next();
      break;
    case Phase::kHead:
      begin_unread();
      (void)refuse(Problem{.reason = "slow", .refusal = {408, "http_request_error", "the request did not arrive in time", ""}});
      break;
    case Phase::kServerTls:
      (void)refuse(
          Problem{.reason = "tls",
                  .refusal = {504, "connection_timeout", format("{} does not answer to TLS", to_string(asked_.destination)), ""}});
      break;
    case Phase::kHandshake:
      (void)refuse(Problem{.reason = "upstream",
                           .refusal = {504, "connection_timeout", "the upstream proxy does not answer", ""},
                           .socks = SocksReply::kTimedOut});
      break;
    case Phase::kHeld:
      (void)find_place();
      break;
    case Phase::kResolving:
    case Phase::kFindingUpstream:
    case Phase::kAnswering:
      on_resolved({.addresses = {}, .error = "the name servers do not answer", .keep = {}});
      break;
    case Phase::kExchange:
      if (client_.out.empty() && !answer_->head_done())
        (void)refuse(
            Problem{.reason = "slow",
                    .refusal = {504, "http_response_timeout", format("{} does not answer", to_string(asked_.destination)), ""}});
      else (void)give_up();
      break;
    case Phase::kSocket:
      (void)fail_dial(ETIMEDOUT);
      break;
    case Phase::kStreams:
      (void)end_streams();
      break;
    default:
      (void)give_up();
  }
}

void Connection::begin_record(Protocol protocol) {
  constexpr const char* kNames[] = {"", "http", "connect", "socks5", "direct", "host-port", "publish", "https"};
  protocol_ = protocol;
  recording_ = true;
  begun_ = Clock::now();
  record_ = {};
  record_.protocol = kNames[static_cast<std::size_t>(protocol)];
  if (protocol == Protocol::kHttp || protocol == Protocol::kHttps) record_.method = asked_.method;
  record_.host = to_string(asked_.destination.host);
  record_.port = asked_.destination.port;
}

void Connection::end_record(std::string reason) {
  if (!recording_) return;
  (void)spend();
  recording_ = false;
  if (up_) record_.bytes_sent += up_->bytes();
  if (down_) record_.bytes_received += down_->bytes();
  record_.time = std::chrono::system_clock::now();
  record_.duration = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begun_);
  record_.allowed = (up_.has_value() || reason == "allowed") && reason != "egress_bytes" && reason != "rules";
  record_.reason = record_.allowed ? "allowed" : std::move(reason);
  spent_ = 0;
  context_.add(std::move(record_));
  record_ = {};
}

}  // namespace belljar::egress
