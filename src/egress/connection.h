// One client of the proxy, from its first byte to the end of its last request. Drives the phases (phase.h) by
// the events of the proxy's thread. Never blocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/unique_fd.h"
#include "egress/context.h"
#include "egress/phase.h"
#include "egress/resolve.h"
#include "policy/host.h"

namespace belljar::egress {

class Connection {
 public:
  using Clock = ConnectionState::Clock;
  using Side = ConnectionState::Side;

  // `id` tells epoll events apart: id * 2 + Side. `direct`: where a client of kDirect wanted to go.
  Connection(Context& context, std::uint64_t id, UniqueFd client, ClientKind kind, policy::Destination direct);
  // Serves one stream of another connection.
  Connection(Context& context, std::uint64_t id, NewStream begun);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  void on_event(Side side, std::uint32_t events);
  void on_resolved(const Resolved& resolved) { enter(phase_->on_resolved(resolved)); }
  void on_socket(UniqueFd socket) { enter(phase_->on_socket(std::move(socket))); }  // an answer of Context::inner
  void on_rules();                                                                  // those of Context::options are others now
  // Does what can be done. True: there is more to do at once, others come first.
  bool progress();
  bool waits_for_credit() const noexcept { return state_.starved; }
  bool over() const noexcept { return phase_->over(); }
  Clock::time_point deadline() const noexcept { return std::min({state_.deadline, state_.again, state_.guard.due()}); }
  void on_deadline();

 private:
  bool enter(Next next);  // false: there is none
  ConnectionState state_;
  Next phase_;  // never nullptr
};

}  // namespace belljar::egress
