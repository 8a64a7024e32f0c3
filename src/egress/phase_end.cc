// How a connection is left: refusals, and the three ways to part with a client.
//
// Closing writes what is left, shuts down our side and waits for the client's end, for close(2) with unread
// input makes the kernel send a reset that can overtake the answer. Breaking tells the client that the server
// broke off, by a reset, but only once the client's kernel has taken what the server had said: SO_LINGER with
// a zero time drops what is queued. There is no event for an empty send queue, so it is asked for (SIOCOUTQ),
// at growing intervals. give_up() resets both ends at once.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "egress/decision.h"
#include "egress/http.h"
#include "egress/phase.h"
#include "egress/relay.h"
#include "egress/socks.h"
#include "policy/host.h"

namespace belljar::egress {
namespace {

constexpr std::size_t kReadAtOnce = std::size_t{256} * 1024;
constexpr int kDrops = 16;
using policy::kHttpPort;  // A client that meant another place can read our reason there; elsewhere it sees a reset

// What the client still sends is for nobody. It is read all the same: the kernel would answer it with a reset that overtakes our
// words, and a client that sends all before it reads must get there.
void drop_input(Endpoint& client) {
  client.in.clear();
  for (int round = 0; round < kDrops && client.read(kReadAtOnce) > 0; ++round) client.in.clear();
}

class Finished final : public Phase {
 public:
  using Phase::Phase;
  bool over() const noexcept override { return true; }
};

// What is still to be written goes out.
class Closing final : public Phase {
 public:
  explicit Closing(ConnectionState& state)
      : Phase(state, state.stream != nullptr ? state.timeouts().answer : state.timeouts().linger) {}
  Next go() override {
    client_.flush();
    if (client_.out.empty()) client_.shut_down();
    if (state_.stream != nullptr) return close_stream();
    drop_input(client_);
    return client_.broken || (client_.eof && client_.out.empty()) ? end(state_) : Next();
  }

 private:
  // What the client has not taken yet is held for it. That is a connection which counts, and whose patience has an end, though its
  // server is gone.
  Next close_stream() {
    if (!client_.out.empty()) return {};
    const std::size_t held = state_.stream->held();
    if (held < std::exchange(held_, held)) state_.wait(state_.timeouts().answer);
    return held == 0 ? end(state_) : Next();
  }
  std::size_t held_ = SIZE_MAX;  // when that was last looked at
};

// The client is to see that the server broke off, but behind what the server had said: a reset drops what is still queued.
class Breaking final : public Phase {
 public:
  Breaking(ConnectionState& state, std::optional<Direction> rest) : Phase(state, state.timeouts().answer), rest_(std::move(rest)) {
    state.guard.cut();
  }
  bool has_begun() const override { return true; }
  Next go() override {
    for (;;) {
      if (!state_.may_pass()) return {};
      const bool all = deliver_rest();
      if (!state_.spend()) return refuse_spent(state_, true);
      if (state_.stream == nullptr) drop_input(client_);
      const std::size_t queued = state_.stream != nullptr ? state_.stream->held() : client_.count_unsent();
      const std::size_t waiting = client_.out.size() + queued + server_.in.size();
      if (client_.broken || (all && waiting == 0)) return give_up(state_);
      if (!all && client_.out.empty() && client_.writable) continue;
      schedule_check(waiting);
      return {};
    }
  }

 private:
  // No event says that the queue is empty.
  void schedule_check(std::size_t waiting) {
    constexpr std::chrono::milliseconds kSoon{5}, kLate{1000};
    const bool taken = waiting < std::exchange(waiting_, waiting);
    if (taken) state_.wait(state_.timeouts().answer);
    pause_ = taken ? kSoon : std::min(2 * pause_, kLate);
    state_.again = ConnectionState::Clock::now() + pause_;
  }
  // True: all that the server had said is in the client's socket, or in what it waits for.
  bool deliver_rest() {
    if (!rest_) {
      state_.record.bytes_received += client_.flush();
      return client_.out.empty();
    }
    constexpr std::uint64_t kPiece = 65536;
    const auto& options = context_.options;
    const std::uint64_t left = options.max_bytes - std::min(options.max_bytes, context_.passed);
    const std::uint64_t most = options.max_rate != 0 ? kPiece : kReadAtOnce;
    const std::uint64_t before = rest_->bytes();
    const bool all = rest_->deliver_rest(std::min(most, left) + 1);  // one byte too many ends it with the reason
    state_.record.bytes_received += rest_->bytes() - before;
    return all;
  }
  std::optional<Direction> rest_;
  std::size_t waiting_ = SIZE_MAX;  // for the client, when its queue was last looked at
  std::chrono::milliseconds pause_{0};
};

}  // namespace

Next Phase::late() { return give_up(state_); }

Next Phase::wait_for_client() { return client_.eof || client_.broken ? leave(state_) : Next(); }

Next refuse(ConnectionState& state, Problem problem) {
  state.drop_server();
  if (!problem.rule.empty()) state.record.rule = problem.rule;
  if (problem.violation) state.note_violation(problem);
  state.end_record(std::move(problem.reason));
  const bool speechless = (state.protocol == Protocol::kDirect && state.asked.destination.port != kHttpPort) ||
                          state.protocol == Protocol::kHostPort || state.protocol == Protocol::kPublished;
  if (speechless) return give_up(state);
  if (state.protocol == Protocol::kSocks) state.client.out += socks_reply(problem.socks);
  else state.client.out += refusal_text(problem.refusal, state.asked.method == "HEAD", false);
  return close_politely(state);
}

Next refuse(ConnectionState& state, const HttpFault& fault) {
  return refuse(state, Problem{"malformed", {fault.status, "http_protocol_error", fault.reason, ""}});
}

// What is under way is cut, since it is known to be more than may pass.
Next refuse_spent(ConnectionState& state, bool begun) {
  if (!begun) return refuse(state, spent_problem());
  state.note_violation(spent_problem());
  state.end_record("egress_bytes");
  return give_up(state);
}

Next leave(ConnectionState& state) {
  state.end_record("ended");
  return state.client.broken ? give_up(state) : close_politely(state);
}

Next close_politely(ConnectionState& state) { return std::make_unique<Closing>(state); }

Next begin_breaking(ConnectionState& state, std::optional<Direction> rest) {
  return std::make_unique<Breaking>(state, std::move(rest));
}

Next give_up(ConnectionState& state) {
  state.end_record(state.server.fd.valid() ? state.broken_as : "ended");
  state.client.abort();
  state.server.abort();
  return end(state);
}

Next end(ConnectionState& state) { return std::make_unique<Finished>(state); }

}  // namespace belljar::egress
