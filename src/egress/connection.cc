#include "egress/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/format.h"

namespace belljar::egress {
namespace {

constexpr std::size_t kWindow = 256 * 1024;  // bytes held for a slow peer while a request is passed on
constexpr int kBudget = 16;                  // bursts of one tunnel before others get a turn

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

bool is_limited(const std::string& method) { return method == "GET" || method == "HEAD" || method == "OPTIONS"; }

}  // namespace

bool Context::is_own(const policy::Ip& ip) {
  constexpr std::chrono::seconds kFresh{5};
  const auto now = Connection::Clock::now();
  if (now >= own_until) own = options.own_addresses(), own_until = now + kFresh;
  return std::ranges::find(own, ip) != own.end();
}

void Context::add(EgressRecord record) {
  if (log.records.size() < options.max_records) log.records.push_back(std::move(record));
  else ++log.records_dropped;
}

// A loop's refusals are counted in the first record of their kind that is still the last.
void Context::add(Violation violation) {
  violation.time = std::chrono::system_clock::now();
  if (!log.violations.empty()) {
    Violation& last = log.violations.back();
    if (last.target == violation.target && last.rule == violation.rule && last.allowed == violation.allowed) {
      ++last.count;
      return;
    }
  }
  if (log.violations.size() < options.max_records) log.violations.push_back(std::move(violation));
  else ++log.violations_dropped;
}

Connection::Connection(Context& context, std::uint64_t id, UniqueFd client) : context_(context), id_(id) {
  client_.fd = std::move(client);
  client_.readable = client_.writable = true;
  const int on = 1;
  ::setsockopt(client_.fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  watch(client_.fd.get(), kClient);
  enter(Phase::kFirstByte, context_.options.timeouts.idle_client);
}

Connection::~Connection() {
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
  while (step()) {
  }
  const bool more = phase_ == Phase::kTunnel && (up_->pump(context_.pipes, 0) || down_->pump(context_.pipes, 0));
  return more && !over();
}

bool Connection::step() {
  switch (phase_) {
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
    case Phase::kExchange:
      return exchange();
    case Phase::kTunnel:
      return tunnel();
    case Phase::kClosing:
      return closing();
    case Phase::kResolving:
    case Phase::kOver:
      return false;
  }
  return false;
}

// --- what the client says

bool Connection::first_byte() {
  client_.read(kMaxHead + 1);
  if (client_.in.empty()) return (client_.eof || client_.broken) && leave();
  const auto byte = static_cast<unsigned char>(client_.in[0]);
  if (byte == 4) {  // SOCKS4 knows no names in its first form, and no reason in its answer
    client_.out = std::string("\0\x5B\0\0\0\0\0\0", 8);
    return close_politely();
  }
  request_.emplace(HttpReader::Kind::kRequest);
  enter(byte == 5 ? Phase::kSocksGreeting : Phase::kHead, context_.options.timeouts.head);
  return true;
}

bool Connection::read_head() {
  client_.read(kMaxHead + 1);
  const std::size_t taken = request_->feed(client_.in);
  client_.in.erase(0, taken);
  if (request_->fault()) return refuse(*request_->fault());
  if (!request_->head_done()) return (client_.eof || client_.broken) && leave();
  HttpFault fault;
  auto asked = read_request(request_->head(), request_->keeps_alive(), fault);
  if (!asked) return refuse(std::move(fault));
  asked_ = *std::move(asked);
  begin_record(asked_.connect ? Protocol::kConnect : Protocol::kHttp);
  if (wrong_credential(basic_credential(asked_.authorization).value_or("")))
    return refuse(Problem{.reason = "credential",
                          .refusal = {407, "http_request_denied", "the proxy credential of this sandbox is missing or wrong",
                                      "use the URL in HTTPS_PROXY as it is"}});
  const bool limited = context_.options.methods == Methods::kLimited;
  if (limited && (asked_.connect || asked_.upgrade))
    return refuse(
        Problem{.reason = "method",
                .refusal = {403, "http_request_denied",
                            format("{} is refused: with network.methods = \"limited\" nothing may pass that cannot be looked at",
                                   asked_.connect ? "CONNECT" : "an upgrade"),
                            "use http://, or network.methods = \"full\""},
                .violation = true,
                .rule_key = "network.methods"});
  if (limited && !is_limited(asked_.method))
    return refuse(Problem{.reason = "method",
                          .refusal = {405, "http_request_denied",
                                      format("the method {} is refused: network.methods is \"limited\"", escaped(asked_.method)),
                                      "GET, HEAD and OPTIONS pass; network.methods = \"full\" opens the rest"},
                          .violation = true,
                          .rule_key = "network.methods"});
  return decide();
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
  begin_record(Protocol::kSocks);
  if (request.parse == Parse::kBad)
    return refuse(
        Problem{.reason = "malformed", .refusal = {400, "http_protocol_error", request.reason, ""}, .socks = request.reply});
  client_.in.erase(0, request.taken);
  if (context_.options.methods == Methods::kLimited)
    return refuse(Problem{.reason = "method",
                          .refusal = {403, "http_request_denied", "SOCKS5 is refused: network.methods is \"limited\"",
                                      "use http:// through the HTTP proxy"},
                          .violation = true,
                          .rule_key = "network.methods"});
  return decide();
}

// --- may it

bool Connection::decide() {
  const policy::HostVerdict verdict = policy::decide_host(context_.options.rules, asked_.destination);
  record_.rule = verdict.rule;
  if (!verdict.allowed()) return refuse(verdict);
  enter(Phase::kResolving, std::chrono::minutes(1));
  if (asked_.destination.host.ip) return take_addresses({.addresses = {*asked_.destination.host.ip}, .error = {}, .keep = {}});
  const auto kept = context_.lookups->ask(asked_.destination.host.name, id_);
  return kept && take_addresses(*kept);
}

void Connection::on_resolved(const Resolved& resolved) {
  if (phase_ == Phase::kResolving) (void)take_addresses(resolved);
}

bool Connection::take_addresses(const Resolved& resolved) {
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
  return addresses_.empty() ? refuse(*worst) : dial_next();
}

bool Connection::dial_next() {
  int error = ENETUNREACH;
  drop_server();
  while (!addresses_.empty()) {
    const policy::Ip ip = addresses_.back();
    addresses_.pop_back();
    UniqueFd fd = dial(ip, asked_.destination.port, error);
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
  if (error != 0) {
    return addresses_.empty() ? fail_dial(error) : dial_next();
  }
  server_.hung = false;
  if (protocol_ == Protocol::kHttp) return begin_exchange();
  client_.out += protocol_ == Protocol::kSocks ? socks_reply(SocksReply::kDone) : "HTTP/1.1 200 Connection established\r\n\r\n";
  return begin_tunnel();
}

bool Connection::fail_dial(int error) {
  const char* const type = error == ECONNREFUSED ? "connection_refused"
                           : error == ETIMEDOUT  ? "connection_timeout"
                                                 : "destination_unavailable";
  return refuse(Problem{.reason = "dial",
                        .refusal = {error == ETIMEDOUT ? 504 : 502, type,
                                    format("cannot connect to {}: {}", to_string(asked_.destination), std::strerror(error)),
                                    ""},  // NOLINT(concurrency-mt-unsafe)
                        .socks = socks_of(error)});
}

// --- a request that is passed on

bool Connection::begin_exchange() {
  server_.out = forwarded_head(request_->head(), asked_);
  answer_.emplace(HttpReader::Kind::kResponse, asked_.method == "HEAD");
  keep_client_ = false;
  enter(Phase::kExchange, context_.options.timeouts.answer);
  return true;
}

bool Connection::exchange() {
  const std::uint64_t before = record_.bytes_sent + record_.bytes_received;
  if (!pass_request()) return true;
  if (!pass_answer()) return true;
  if (client_.broken) return give_up();
  if (record_.bytes_sent + record_.bytes_received != before) deadline_ = Clock::now() + context_.options.timeouts.answer;
  if (answer_->done() && client_.out.empty()) return end_exchange();
  return false;
}

// False: the phase is another one now.
bool Connection::pass_request() {
  for (;;) {
    record_.bytes_sent += server_.flush();
    if (request_->done() || server_.out.size() >= kWindow) return true;
    client_.read(kWindow);
    const std::size_t taken = request_->feed(client_.in);
    if (request_->fault()) return refuse(*request_->fault()), false;
    if (taken == 0) {
      if (!client_.eof && !client_.broken) return true;
      return give_up(), false;
    }
    server_.out.append(client_.in, 0, taken);
    client_.in.erase(0, taken);
  }
}

bool Connection::pass_answer() {
  for (;;) {
    record_.bytes_received += client_.flush();
    if (answer_->done() || client_.out.size() >= kWindow) return true;
    server_.read(kWindow);
    const bool had_head = answer_->head_done();
    const std::size_t taken = answer_->feed(server_.in);
    if (answer_->fault() || (taken == 0 && (server_.eof || server_.broken) && !answer_->end())) {
      if (had_head) return give_up(), false;  // cut short, and the client must see that it was
      const std::string why = answer_->fault() ? answer_->fault()->reason : "it closed the connection without an answer";
      return refuse(Problem{.reason = "server",
                            .refusal = {502, "http_protocol_error",
                                        format("{} gave no HTTP answer: {}", to_string(asked_.destination), why), ""}}),
             false;
    }
    if (taken == 0) return true;
    if (!had_head && answer_->head_done()) {
      server_.in.erase(0, taken);
      if (!answer_head()) return false;
      continue;
    }
    client_.out.append(server_.in, 0, taken);
    server_.in.erase(0, taken);
  }
}

bool Connection::answer_head() {
  const HttpHead& head = answer_->head();
  if (head.status == 101) {
    if (!asked_.upgrade)
      return refuse(Problem{.reason = "server",
                            .refusal = {502, "http_protocol_error", "the server changes the protocol unasked", ""}}),
             false;
    client_.out += returned_head(head, false, true);
    return begin_tunnel(), false;
  }
  keep_client_ = asked_.keep_alive && head.version == 11 && !answer_->needs_end();
  client_.out += returned_head(head, keep_client_, false);
  if (head.status < 200) answer_.emplace(HttpReader::Kind::kResponse, asked_.method == "HEAD");
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

// --- a tunnel

bool Connection::begin_tunnel() {
  server_.out += std::exchange(client_.in, {});
  client_.out += std::exchange(server_.in, {});
  record_.bytes_sent += server_.out.size();
  up_.emplace(client_, server_);
  down_.emplace(server_, client_);
  enter(Phase::kTunnel, context_.options.timeouts.tunnel);
  return true;
}

bool Connection::tunnel() {
  const std::uint64_t before = up_->bytes() + down_->bytes();
  const bool more_up = up_->pump(context_.pipes, kBudget), more_down = down_->pump(context_.pipes, kBudget);
  if (client_.broken || server_.broken) return give_up();
  if (up_->done() && down_->done()) {
    end_record("allowed");
    phase_ = Phase::kOver;
    return false;
  }
  if ((up_->done() && client_.hung) || (down_->done() && server_.hung)) return give_up();
  if (up_->bytes() + down_->bytes() != before || more_up || more_down) {
    const auto& timeouts = context_.options.timeouts;
    deadline_ = Clock::now() + (up_->done() || down_->done() ? timeouts.half_closed : timeouts.tunnel);
  }
  return false;
}

// --- the end

bool Connection::refuse(HttpFault fault) {
  begin_record(Protocol::kHttp);
  return refuse(Problem{.reason = "malformed", .refusal = {fault.status, "http_protocol_error", std::move(fault.reason), ""}});
}

bool Connection::refuse(const policy::HostVerdict& verdict) {
  const bool address = verdict.reason == policy::HostReason::kNotPublic || verdict.reason == policy::HostReason::kOwnAddress;
  return refuse(
      Problem{.reason = std::string(policy::to_string(verdict.reason)),
              .refusal = {403, address ? "destination_ip_prohibited" : "http_request_denied",
                          policy::explain_verdict(verdict, asked_.destination), policy::next_step(verdict, asked_.destination)},
              .violation = true,
              .rule_key = verdict.reason == policy::HostReason::kDenied ? "network.denied_domains" : "network.allowed_domains",
              .rule = verdict.rule});
}

bool Connection::refuse(Problem problem) {
  drop_server();
  if (!problem.rule.empty()) record_.rule = problem.rule;
  if (problem.violation) {
    const ProxyOptions& options = context_.options;
    Violation violation;
    violation.operation = "egress";
    violation.target = to_string(asked_.destination);
    violation.rule = problem.rule_key;
    violation.origin = problem.rule_key == "network.denied_domains"    ? options.denied_origin
                       : problem.rule_key == "network.allowed_domains" ? options.allowed_origin
                                                                       : options.mode_origin;
    violation.errnum = EACCES;
    violation.allowed = problem.refusal.reason + (problem.refusal.next.empty() ? "" : "; " + problem.refusal.next);
    context_.add(std::move(violation));
  }
  end_record(std::move(problem.reason));
  if (protocol_ == Protocol::kSocks) client_.out += socks_reply(problem.socks);
  else client_.out += refusal_text(problem.refusal, asked_.method == "HEAD", false);
  return close_politely();
}

// What is still to be written goes out; what the client still sends is read and dropped, or the kernel would answer it with a reset
// that overtakes our words.
bool Connection::close_politely() {
  enter(Phase::kClosing, context_.options.timeouts.linger);
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
  client_.in.clear();
  for (int round = 0; round < kBudget && client_.read(kWindow) > 0; ++round) client_.in.clear();
  const bool finished = client_.broken || (client_.eof && client_.out.empty());
  if (finished) phase_ = Phase::kOver;
  return false;
}

bool Connection::give_up() {
  end_record(server_.fd.valid() ? "cut" : "ended");
  client_.abort();
  server_.abort();
  phase_ = Phase::kOver;
  return false;
}

void Connection::drop_server() { server_ = End{}; }

void Connection::on_deadline() {
  switch (phase_) {
    case Phase::kDialing:
      if (addresses_.empty()) (void)fail_dial(ETIMEDOUT);
      else (void)dial_next();
      break;
    case Phase::kHead:
      begin_record(Protocol::kHttp);
      (void)refuse(Problem{.reason = "slow", .refusal = {408, "http_request_error", "the request did not arrive in time", ""}});
      break;
    case Phase::kResolving:
      (void)take_addresses({.addresses = {}, .error = "the name servers do not answer", .keep = {}});
      break;
    case Phase::kExchange:
      if (client_.out.empty() && !answer_->head_done())
        (void)refuse(
            Problem{.reason = "slow",
                    .refusal = {504, "http_response_timeout", format("{} does not answer", to_string(asked_.destination)), ""}});
      else (void)give_up();
      break;
    default:
      (void)give_up();
  }
}

void Connection::begin_record(Protocol protocol) {
  constexpr const char* kNames[] = {"", "http", "connect", "socks5"};
  protocol_ = protocol;
  recording_ = true;
  begun_ = Clock::now();
  record_ = {};
  record_.protocol = kNames[static_cast<std::size_t>(protocol)];
  if (protocol == Protocol::kHttp) record_.method = asked_.method;
  record_.host = to_string(asked_.destination.host);
  record_.port = asked_.destination.port;
}

void Connection::end_record(std::string reason) {
  if (!std::exchange(recording_, false)) return;
  if (up_) record_.bytes_sent += up_->bytes();
  if (down_) record_.bytes_received += down_->bytes();
  record_.time = std::chrono::system_clock::now();
  record_.duration = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begun_);
  record_.allowed = up_.has_value() || reason == "allowed";
  record_.reason = record_.allowed ? "allowed" : std::move(reason);
  context_.add(std::move(record_));
  record_ = {};
}

}  // namespace belljar::egress
