#include "egress/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "belljar/exec_result.h"
#include "egress/context.h"
#include "egress/culprit.h"
#include "egress/decision.h"
#include "egress/http.h"
#include "egress/phase.h"
#include "egress/proxy.h"
#include "egress/relay.h"
#include "egress/streams.h"
#include "policy/host.h"

namespace belljar::egress {

Connection::Connection(Context& context, std::uint64_t id, UniqueFd client, Way way, policy::Destination direct)
    : talk_{.context = context, .id = id, .way = way, .direct = std::move(direct)} {
  End& end = talk_.client;
  end.fd = std::move(client);
  end.readable = end.writable = true;
  const int on = 1;
  ::setsockopt(end.fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  talk_.watch(end.fd.get(), Talk::kClient);
  phase_ = arrive(talk_);
}

Connection::Connection(Context& context, std::uint64_t id, Born born)
    : talk_{.context = context, .id = id, .way = born.way, .direct = std::move(born.direct), .stream = std::move(born.stream)} {
  talk_.stream->wake_server = [&context, id] { context.woken.insert(id); };
  talk_.client.writable = true;
  talk_.client.begin_secure(std::make_unique<StreamEnd>(talk_.stream));
  talk_.tunnel = std::move(born.place);
  if (born.server.fd.valid()) {
    talk_.server = std::move(born.server);
    talk_.record.address = std::move(born.address);
    talk_.watch(talk_.server.fd.get(), Talk::kServer);
  }
  phase_ = begin_head(talk_);
}

Connection::~Connection() {
  talk_.note_unread_stream();
  talk_.end_record("ended");
}

bool Connection::enter(Next next) {
  if (next == nullptr) return false;
  phase_ = std::move(next);
  return true;
}

void Connection::on_event(Side side, std::uint32_t events) {
  End& end = side == Talk::kClient ? talk_.client : talk_.server;
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) end.readable = true;
  if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) end.writable = true;
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) end.hung = true;
}

bool Connection::progress() {
  if (talk_.stream != nullptr && talk_.stream->gone && !over()) {
    talk_.note_unread_stream();
    return enter(give_up(talk_)), false;
  }
  do talk_.starved = false;
  while (enter(phase_->go()));
  return !talk_.starved && phase_->has_more();
}

// Requests that are still to come are judged anew anyhow.
void Connection::on_rules() {
  if (!talk_.recording || !talk_.leaves()) return;
  phase_->on_rules();
  const auto verdict = find_refusal(talk_);
  if (!verdict) return;
  const End& client = talk_.client;
  Problem problem = problem_of(*verdict, talk_.asked.destination);
  // Its client is done with it, and nothing was refused to anybody: a command whose hosts are closed at its end.
  const bool left = client.eof || client.hung || client.broken;
  const bool begun = phase_->has_begun() || (talk_.tunnel && talk_.protocol == Protocol::kSocks);
  if (!left && !begun) return (void)enter(refuse(talk_, std::move(problem)));
  if (!left) {
    problem.refusal.reason = "the rules changed: " + problem.refusal.reason;
    talk_.note_violation(problem);
    talk_.record.rule = problem.rule;
    talk_.end_record("rules");
  }
  enter(give_up(talk_));
}

void Connection::on_deadline() {
  if (Clock::now() >= talk_.deadline) return (void)enter(phase_->late());
  talk_.again = Clock::time_point::max();
  phase_->on_silence();
}

// --- what its phases share

void Talk::watch(int fd, Side side) const {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.u64 = id * 2 + side;
  ::epoll_ctl(context.epoll, EPOLL_CTL_ADD, fd, &event);
}

void Talk::begin_record(Protocol what) {
  constexpr const char* kNames[] = {"", "http", "connect", "socks5", "direct", "host-port", "publish", "https"};
  protocol = what;
  recording = true;
  begun = Clock::now();
  std::string dialled = server.fd.valid() ? std::move(record.address) : "";
  record = {};
  record.protocol = kNames[static_cast<std::size_t>(protocol)];
  if (is_request()) record.method = asked.method;
  record.host = to_string(asked.destination.host);
  record.port = asked.destination.port;
  record.address = std::move(dialled);
}

// The record of a request that could not be read: nothing of the one before is in it.
void Talk::begin_unread() {
  asked = {};
  if (request) asked.method = request->head().method;
  if (const auto* const place = fixed_place()) asked.destination = *place;
  begin_record(client.secure != nullptr ? Protocol::kHttps : Protocol::kHttp);
}

// There is no record any more of what asked for the tunnel: so each stream has one, also who is gone before it was looked at.
void Talk::note_unread_stream() {
  if (stream != nullptr && protocol == Protocol::kNone) begin_unread();
}

void Talk::note_violation(const Problem& problem) {
  Violation violation;
  violation.operation = "egress";
  violation.target = to_string(asked.destination);
  violation.rule = problem.rule_key;
  violation.origin = context.origin_of(problem.rule_key);
  const Culprit by = culprit();
  violation.pid = record.pid = by.pid;
  violation.program = record.program = by.program;
  violation.errnum = EACCES;
  violation.allowed = problem.refusal.reason + (problem.refusal.next.empty() ? "" : "; " + problem.refusal.next);
  context.add(std::move(violation));
}

void Talk::end_record(std::string reason) {
  if (!recording) return;
  (void)spend();
  recording = false;
  record.time = std::chrono::system_clock::now();
  record.duration = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begun);
  record.allowed = (tunnelled || reason == "allowed") && reason != "egress_bytes" && reason != "rules";
  record.reason = record.allowed ? "allowed" : std::move(reason);
  spent = 0;
  context.add(std::move(record));
  record = {};
}

bool Talk::may_pass() {
  starved = !context.has_credit();
  return !starved;
}

bool Talk::spend() {
  const std::uint64_t now = passed();
  return context.spend(now - std::exchange(spent, now));
}

}  // namespace belljar::egress
