// A tunnel that is looked into: TLS with the client as the host it asked for, each request in it judged like one in the clear, TLS
// with the server, and the credentials that are put in on the way.
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "egress/connection.h"
#include "egress/credentials.h"
#include "egress/http.h"
#include "egress/intercept.h"
#include "policy/domains.h"
#include "policy/host.h"
#include "policy/look.h"

namespace belljar::egress {
namespace {

constexpr unsigned char kTlsHandshake = 22;  // the first byte of a ClientHello, RFC 8446 section 5.1
constexpr std::chrono::milliseconds kSilence{50};
constexpr int kNoContent = 204, kPartialContent = 206, kNotModified = 304;

}  // namespace

bool Connection::can_look() const {
  const auto& options = context_.options;
  if (options.interceptor == nullptr || !leaves()) return false;
  return policy::decide_look(options.rules, options.look, asked_.destination).looks();
}

bool Connection::is_left_whole() const {
  const auto& passthrough = context_.options.look.passthrough;
  return std::ranges::any_of(
      passthrough, [this](const policy::DomainRule& rule) { return policy::covers_destination(rule, asked_.destination); });
}

// Nothing but a credential asks for the look: what no credential can be put into may pass as it is.
bool Connection::may_stay_whole() const {
  const auto& options = context_.options;
  return !options.look.limited && policy::decide_host(options.rules, *tunnel_).reason == policy::HostReason::kAllowed;
}

// Nobody judges what is in it, but a value of the host's may come back in the clear.
bool Connection::stay_whole() {
  guard_answers(*tunnel_);
  tunnel_.reset();
  dialled_ahead_ = false;
  return begin_tunnel();
}

// The server that was dialled for the tunnel may have lost patience with a client that was slow to ask.
bool Connection::server_waits() const {
  char byte = 0;
  return !server_.hung && ::recv(server_.fd.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
}

bool Connection::server_speaks() const {
  char byte = 0;
  return ::recv(server_.fd.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

bool Connection::looks_into() const {
  const bool carrier = protocol_ == Protocol::kConnect || protocol_ == Protocol::kSocks || protocol_ == Protocol::kDirect;
  return carrier && can_look();
}

// What the client sends first into the tunnel says what it is.
bool Connection::peek() {
  client_.flush();
  if (client_.in.empty()) client_.read(kMaxHead);
  if (client_.in.empty() && server_speaks() && may_stay_whole()) return stay_whole();  // it speaks first: SSH, mail
  if (client_.in.empty()) return (client_.eof || client_.broken) && leave();
  const auto byte = static_cast<unsigned char>(client_.in[0]);
  if (byte >= 'A' && byte <= 'Z' && !begins_other(client_.in)) {  // a request in the clear, judged as one
    request_.emplace(HttpReader::Kind::kRequest);
    enter(Phase::kHead, context_.options.timeouts.head);
    return true;
  }
  if (byte != kTlsHandshake && may_stay_whole()) return stay_whole();
  auto stream = byte == kTlsHandshake ? context_.options.interceptor->accept(tunnel_->host) : nullptr;
  if (stream == nullptr) {
    Problem problem{.reason = "method",
                    .refusal = {403, "http_request_denied", "only HTTP and TLS are looked into, and this is neither",
                                "network.tls_passthrough leaves the host's connections whole"},
                    .violation = true,
                    .rule_key = "network.allowed_requests"};
    if (context_.options.look.limited) problem.rule_key = "network.methods";
    note_violation(problem);
    end_record(std::move(problem.reason));
    return give_up();
  }
  client_.begin_secure(std::move(stream));
  enter(Phase::kClientTls, context_.options.timeouts.head);
  return true;
}

bool Connection::client_tls() {
  const auto state = client_.shake_hands();
  if (state == SecureStream::State::kMore) return (client_.eof || client_.broken) && leave();
  if (state == SecureStream::State::kReady && client_.secure->protocol() == "h2") return begin_streams();
  if (state == SecureStream::State::kReady) {
    enter(Phase::kFirstByte, context_.options.timeouts.idle_client);
    return true;
  }
  // The alert is on its way; in words it stands in the record.
  const TlsFault fault = client_.secure->fault();
  Problem problem{
      .reason = fault.reason,
      .refusal = {403, fault.error, format("TLS with the client of {} did not come about: {}", to_string(*tunnel_), fault.text),
                  "network.tls_passthrough leaves the host's connections whole"},
      .violation = fault.reason == "tls-sni",
      .rule_key = "network.allowed_domains"};
  if (problem.violation) note_violation(problem);
  end_record(std::move(problem.reason));
  drop_server();
  client_.secure.reset();  // what else it sends is dropped as it is
  return close_politely();
}

bool Connection::begin_server_tls() {
  auto stream = context_.options.interceptor->connect(asked_.destination.host, asked_.stream ? Offer::kHttp2 : Offer::kHttp1);
  if (stream == nullptr)
    return refuse(Problem{.reason = "tls", .refusal = {502, "tls_protocol_error", "TLS with the server cannot begin", ""}});
  server_.begin_secure(std::move(stream));
  enter(Phase::kServerTls, context_.options.timeouts.dial);
  return true;
}

bool Connection::server_tls() {
  const auto state = server_.shake_hands();
  if (state == SecureStream::State::kReady) return begin_exchange();
  if (client_.hung) return give_up();
  const bool ended = server_.eof || server_.broken;
  if (state == SecureStream::State::kMore && !ended) return false;
  TlsFault fault = server_.secure->fault();
  if (state == SecureStream::State::kMore) fault = {"tls", "connection_terminated", "it closed the connection"};
  const bool untrusted = fault.reason == "tls-untrusted";
  return refuse(Problem{.reason = fault.reason,
                        .refusal = {502, fault.error, format("no TLS with {}: {}", to_string(asked_.destination), fault.text),
                                    untrusted ? "network.tls_ca_file names further roots" : ""}});
}

// --- credentials

bool Connection::refuse_misplaced(const Credential& wrong) {
  const std::string where =
      asked_.secure ? to_string(asked_.destination) : format("{} in the clear", to_string(asked_.destination));
  return refuse(Problem{.reason = "credential",
                        .refusal = {403, "http_request_denied", format("the credential {} is not for {}", wrong.rule.name, where),
                                    asked_.secure ? "network.credentials names its hosts" : "use https://"},
                        .violation = true,
                        .rule_key = "network.credentials",
                        .rule = wrong.rule.text});
}

// False: refused. What goes on is head_ from here.
bool Connection::check_credentials() {
  const Credentials& credentials = context_.options.credentials;
  head_ = request_->head();
  if (context_.options.methods == Methods::kLimited) std::erase_if(head_.fields, repeats_request);
  guard_answers(asked_.destination);
  if (credentials.empty()) return true;
  if (const Credential* wrong = credentials.find_misplaced(head_, asked_)) return refuse_misplaced(*wrong), false;
  (void)credentials.put_in(head_, asked_);
  return true;
}

// False: refused. Nothing is put into them, as into a body.
bool Connection::check_trailers() {
  const Credentials& credentials = context_.options.credentials;
  if (credentials.empty() || request_->trailers().empty()) return true;
  HttpHead trailers;
  trailers.fields = request_->trailers();
  const Credential* const wrong = credentials.find_misplaced(trailers, asked_);
  return wrong == nullptr || (refuse_misplaced(*wrong), false);
}

void Connection::stop_guarding() {
  restorer_.reset();
  frames_.reset();
  silence_ = Clock::time_point::max();
}

// A host that has a value may say it again whenever it is asked, in the clear too.
void Connection::guard_answers(const policy::Destination& place) {
  stop_guarding();
  const auto known = context_.options.credentials.known_to(place.host);
  if (!known.empty()) restorer_.emplace(known);
}

std::string Connection::filter(std::string_view bytes, bool last) {
  std::string passed = frames_ ? frames_->feed(bytes, last) : restorer_->feed(bytes, last);
  silence_ = (frames_ ? frames_->holds_little() : restorer_->holds_little()) ? Clock::now() + kSilence : Clock::time_point::max();
  return passed;
}

void Connection::give_early() {
  silence_ = Clock::time_point::max();
  if (phase_ == Phase::kBreaking) return;  // it looks at the client's queue, and gives out no more of this
  const std::string passed = frames_ ? frames_->give_early() : restorer_->give_early();
  if (phase_ == Phase::kTunnel) client_.out += passed;
  else if (phase_ == Phase::kExchange) deliver_body(passed);
}

// Names are text as well. The status is a number.
void Connection::restore(HttpHead& head) const {
  if (!restorer_) return;
  head.phrase = restorer_->restore(head.phrase);
  for (HttpField& field : head.fields) field = {restorer_->restore(field.name), restorer_->restore(field.value)};
}

void Connection::begin_answer() {
  answer_.emplace(HttpReader::Kind::kResponse, asked_.method == "HEAD");
  if (restorer_) answer_->keep_body();
}

// False: refused. Nobody behind us would undo a coding that is left on the way. An answer without a body has nothing to undo.
bool Connection::check_coding() {
  const auto status = answer_->head().status;
  const bool bodiless = asked_.method == "HEAD" || status == kNoContent || status == kNotModified;
  if (!asked_.stream || bodiless || !is_transfer_coded(answer_->head())) return true;
  return refuse(Problem{
             .reason = "server",
             .refusal = {502, "http_protocol_error",
                         format("the answer of {} has a transfer coding that HTTP/2 does not know", to_string(asked_.destination)),
                         ""}}),
         false;
}

// False: refused. What cannot be read as a whole could bring the credential back, and so could the server's words in our own.
bool Connection::check_answer() {
  if (!restorer_ || asked_.method == "HEAD") return true;
  const HttpHead& head = answer_->head();
  const bool partial = head.status == kPartialContent || find_field(head, "Content-Range") != nullptr;
  if (!partial && !is_encoded(head)) return true;
  return refuse(Problem{.reason = "server",
                        .refusal = {502, "http_protocol_error",
                                    format("the answer of {} is {} although that was not asked for, and may hold a credential",
                                           to_string(asked_.destination), partial ? "a part" : "encoded"),
                                    ""}}),
         false;
}

// A piece of the answer's body to the client: as it is, or without what must not come back. Lengths stay; chunks are ours then.
void Connection::deliver(std::string_view raw) {
  if (!restorer_) {
    client_.out += raw;
    return;
  }
  const bool done = answer_->done();
  deliver_body(filter(answer_->take_body(), done));
  if (!done || find_field(answer_->head(), "Transfer-Encoding") == nullptr) return;
  client_.out += "0\r\n";
  for (const HttpField& field : answer_->trailers())
    client_.out += format("{}: {}\r\n", restorer_->restore(field.name), restorer_->restore(field.value));
  client_.out += "\r\n";
}

void Connection::deliver_body(const std::string& body) {
  const bool chunked = find_field(answer_->head(), "Transfer-Encoding") != nullptr;
  if (!chunked) client_.out += body;
  else if (!body.empty()) client_.out += format("{:x}\r\n{}\r\n", body.size(), body);
}

}  // namespace belljar::egress
