// What drives the phases of one client, and keeps the record of what it asked.
//
// progress() repeats go() until a phase has nothing more to do. Every connection leaves a record: the phases
// end it with a reason, and the destructor ends one that is still open, so that a proxy that stops forgets
// nobody.
//
// on_rules() asks the decision again for a connection that is under way. Where the client has had nothing of
// an answer yet, it gets a refusal like any other; where an answer has begun, an error page cannot follow, so
// both ends are reset and the record says `rules`. A client that has left already was refused nothing: its
// connection ends without a violation.
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

Connection::Connection(Context& context, std::uint64_t id, UniqueFd client, ClientKind kind, policy::Destination direct)
    : state_{.context = context, .id = id, .client_kind = kind, .direct = std::move(direct)} {
  Endpoint& end = state_.client;
  end.fd = std::move(client);
  end.readable = end.writable = true;
  const int on = 1;
  ::setsockopt(end.fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  state_.watch(end.fd.get(), ConnectionState::kClient);
  phase_ = arrive(state_);
}

Connection::Connection(Context& context, std::uint64_t id, NewStream begun)
    : state_{.context = context,
             .id = id,
             .client_kind = begun.client_kind,
             .direct = std::move(begun.direct),
             .stream = std::move(begun.stream)} {
  state_.stream->wake_server = [&context, id] { context.woken.insert(id); };
  state_.client.writable = true;
  state_.client.begin_secure(std::make_unique<StreamEnd>(state_.stream));
  state_.tunnel = std::move(begun.place);
  if (begun.server.fd.valid()) {
    state_.server = std::move(begun.server);
    state_.record.address = std::move(begun.address);
    state_.watch(state_.server.fd.get(), ConnectionState::kServer);
  }
  phase_ = begin_head(state_);
}

Connection::~Connection() {
  state_.note_unread_stream();
  state_.end_record("ended");
}

bool Connection::enter(Next next) {
  if (next == nullptr) return false;
  phase_ = std::move(next);
  return true;
}

void Connection::on_event(Side side, std::uint32_t events) {
  Endpoint& end = side == ConnectionState::kClient ? state_.client : state_.server;
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) end.readable = true;
  if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) end.writable = true;
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) end.hung = true;
}

bool Connection::progress() {
  if (state_.stream != nullptr && state_.stream->gone && !over()) {
    state_.note_unread_stream();
    return enter(give_up(state_)), false;
  }
  do state_.starved = false;
  while (enter(phase_->go()));
  return !state_.starved && phase_->has_more();
}

// Requests that are still to come are judged anew anyhow.
void Connection::on_rules() {
  if (!state_.recording || !state_.leaves()) return;
  phase_->on_rules();
  const auto verdict = find_refusal(state_);
  if (!verdict) return;
  const Endpoint& client = state_.client;
  Problem problem = problem_of(*verdict, state_.asked.destination);
  // Its client is done with it, and nothing was refused to anybody: a command whose hosts are closed at its end.
  const bool left = client.eof || client.hung || client.broken;
  const bool begun = phase_->has_begun() || (state_.tunnel && state_.protocol == Protocol::kSocks);
  if (!left && !begun) return (void)enter(refuse(state_, std::move(problem)));
  if (!left) {
    problem.refusal.reason = "the rules changed: " + problem.refusal.reason;
    state_.note_violation(problem);
    state_.record.rule = problem.rule;
    state_.end_record("rules");
  }
  enter(give_up(state_));
}

void Connection::on_deadline() {
  if (Clock::now() >= state_.deadline) return (void)enter(phase_->late());
  state_.again = Clock::time_point::max();
  phase_->on_silence();
}

// --- what its phases share

void ConnectionState::watch(int fd, Side side) const {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.u64 = id * 2 + side;
  ::epoll_ctl(context.epoll, EPOLL_CTL_ADD, fd, &event);
}

void ConnectionState::begin_record(Protocol what) {
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
void ConnectionState::begin_unread() {
  asked = {};
  if (request) asked.method = request->head().method;
  if (const auto* const place = fixed_place()) asked.destination = *place;
  begin_record(client.secure != nullptr ? Protocol::kHttps : Protocol::kHttp);
}

// There is no record any more of what asked for the tunnel: so each stream has one, also who is gone before it was looked at.
void ConnectionState::note_unread_stream() {
  if (stream != nullptr && protocol == Protocol::kNone) begin_unread();
}

void ConnectionState::note_violation(const Problem& problem) {
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

void ConnectionState::end_record(std::string reason) {
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

bool ConnectionState::may_pass() {
  starved = !context.has_credit();
  return !starved;
}

bool ConnectionState::spend() {
  const std::uint64_t now = passed();
  return context.spend(now - std::exchange(spent, now));
}

}  // namespace belljar::egress
