// How a connection is left: refusals, and the three ways to part with a client.
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
void drop_input(End& client) {
  client.in.clear();
  for (int round = 0; round < kDrops && client.read(kReadAtOnce) > 0; ++round) client.in.clear();
}

class Over final : public Phase {
 public:
  using Phase::Phase;
  bool over() const noexcept override { return true; }
};

// What is still to be written goes out.
class Closing final : public Phase {
 public:
  explicit Closing(Talk& talk) : Phase(talk, talk.stream != nullptr ? talk.timeouts().answer : talk.timeouts().linger) {}
  Next go() override {
    client_.flush();
    if (client_.out.empty()) client_.shut_down();
    if (talk_.stream != nullptr) return close_stream();
    drop_input(client_);
    return client_.broken || (client_.eof && client_.out.empty()) ? end(talk_) : Next();
  }

 private:
  // What the client has not taken yet is held for it. That is a connection which counts, and whose patience has an end, though its
  // server is gone.
  Next close_stream() {
    if (!client_.out.empty()) return {};
    const std::size_t held = talk_.stream->held();
    if (held < std::exchange(held_, held)) talk_.wait(talk_.timeouts().answer);
    return held == 0 ? end(talk_) : Next();
  }
  std::size_t held_ = SIZE_MAX;  // when that was last looked at
};

// The client is to see that the server broke off, but behind what the server had said: a reset drops what is still queued.
class Breaking final : public Phase {
 public:
  Breaking(Talk& talk, std::optional<Direction> rest) : Phase(talk, talk.timeouts().answer), rest_(std::move(rest)) {
    talk.guard.cut();
  }
  bool has_begun() const override { return true; }
  Next go() override {
    for (;;) {
      if (!talk_.may_pass()) return {};
      const bool all = deliver_rest();
      if (!talk_.spend()) return refuse_spent(talk_, true);
      if (talk_.stream == nullptr) drop_input(client_);
      const std::size_t queued = talk_.stream != nullptr ? talk_.stream->held() : client_.count_unsent();
      const std::size_t waiting = client_.out.size() + queued + server_.in.size();
      if (client_.broken || (all && waiting == 0)) return give_up(talk_);
      if (!all && client_.out.empty() && client_.writable) continue;
      look_again(waiting);
      return {};
    }
  }

 private:
  // No event says that the queue is empty.
  void look_again(std::size_t waiting) {
    constexpr std::chrono::milliseconds kSoon{5}, kLate{1000};
    const bool taken = waiting < std::exchange(waiting_, waiting);
    if (taken) talk_.wait(talk_.timeouts().answer);
    pause_ = taken ? kSoon : std::min(2 * pause_, kLate);
    talk_.again = Talk::Clock::now() + pause_;
  }
  // True: all that the server had said is in the client's socket, or in what it waits for.
  bool deliver_rest() {
    if (!rest_) {
      talk_.record.bytes_received += client_.flush();
      return client_.out.empty();
    }
    constexpr std::uint64_t kPiece = 65536;
    const auto& options = context_.options;
    const std::uint64_t left = options.max_bytes - std::min(options.max_bytes, context_.passed);
    const std::uint64_t most = options.max_rate != 0 ? kPiece : kReadAtOnce;
    const std::uint64_t before = rest_->bytes();
    const bool all = rest_->deliver_rest(std::min(most, left) + 1);  // one byte too many ends it with the reason
    talk_.record.bytes_received += rest_->bytes() - before;
    return all;
  }
  std::optional<Direction> rest_;
  std::size_t waiting_ = SIZE_MAX;  // for the client, when its queue was last looked at
  std::chrono::milliseconds pause_{0};
};

}  // namespace

Next Phase::late() { return give_up(talk_); }

Next Phase::wait_for_client() { return client_.eof || client_.broken ? leave(talk_) : Next(); }

Next refuse(Talk& talk, Problem problem) {
  talk.drop_server();
  if (!problem.rule.empty()) talk.record.rule = problem.rule;
  if (problem.violation) talk.note_violation(problem);
  talk.end_record(std::move(problem.reason));
  const bool speechless = (talk.protocol == Protocol::kDirect && talk.asked.destination.port != kHttpPort) ||
                          talk.protocol == Protocol::kHostPort || talk.protocol == Protocol::kPublished;
  if (speechless) return give_up(talk);
  if (talk.protocol == Protocol::kSocks) talk.client.out += socks_reply(problem.socks);
  else talk.client.out += refusal_text(problem.refusal, talk.asked.method == "HEAD", false);
  return close_politely(talk);
}

Next refuse(Talk& talk, const HttpFault& fault) {
  return refuse(talk, Problem{"malformed", {fault.status, "http_protocol_error", fault.reason, ""}});
}

// What is under way is cut, since it is known to be more than may pass.
Next refuse_spent(Talk& talk, bool begun) {
  if (!begun) return refuse(talk, spent_problem());
  talk.note_violation(spent_problem());
  talk.end_record("egress_bytes");
  return give_up(talk);
}

Next leave(Talk& talk) {
  talk.end_record("ended");
  return talk.client.broken ? give_up(talk) : close_politely(talk);
}

Next close_politely(Talk& talk) { return std::make_unique<Closing>(talk); }

Next begin_breaking(Talk& talk, std::optional<Direction> rest) { return std::make_unique<Breaking>(talk, std::move(rest)); }

Next give_up(Talk& talk) {
  talk.end_record(talk.server.fd.valid() ? talk.broken_as : "ended");
  talk.client.abort();
  talk.server.abort();
  return end(talk);
}

Next end(Talk& talk) { return std::make_unique<Over>(talk); }

}  // namespace belljar::egress
