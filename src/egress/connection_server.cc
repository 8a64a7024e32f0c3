// The way to the server: the decision, the dial, and what then passes between the two ends.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "egress/connection.h"
#include "egress/names.h"

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

}  // namespace

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
  if (phase_ == Phase::kAnswering) (void)answer(answer_question(context_, asked_name_, resolved));
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
  if (protocol_ == Protocol::kSocks) client_.out += socks_reply(SocksReply::kDone);
  if (protocol_ == Protocol::kConnect) client_.out += "HTTP/1.1 200 Connection established\r\n\r\n";
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

}  // namespace belljar::egress
