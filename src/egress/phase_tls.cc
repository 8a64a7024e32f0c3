// TLS interception: TLS with the client as the host it asked for, each request in it judged like one in the
// clear, TLS with the server; and HTTP/2 in it.
//
// The order, and why:
//
//   1. The tunnel's destination is decided and the server is connected. Only then the client hears its
//      200, as for any other tunnel.
//   2. Peek looks at the client's first byte. 22 begins a ClientHello. A method begins HTTP in the clear,
//      which is judged as such. If the server speaks first (SSH, mail), or the byte is neither, the tunnel
//      passes as it is where the rules allow that, and is reset where they ask for requests.
//   3. ClientTls shakes hands with a certificate of this sandbox's own authority. A name in SNI must be
//      the host of the tunnel: another one is domain fronting.
//   4. The client is at FirstByte again, and its request goes through the same reader and the same
//      decision as one without TLS.
//   5. ServerTls begins TLS with the server once a request is allowed. Before that, no byte of the
//      client's has left, and a server whose certificate is refused was told nothing but its own name.
//
// HTTP/2 needs no decision of its own: CarryingStreams makes each stream a connection whose client is
// HTTP/1.1 text (streams.h). The first stream takes over the server that was dialled for the tunnel; the
// others dial by themselves.
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "base/format.h"
#include "egress/context.h"
#include "egress/decision.h"
#include "egress/http.h"
#include "egress/intercept.h"
#include "egress/phase.h"
#include "egress/relay.h"
#include "egress/streams.h"
#include "policy/host.h"

namespace belljar::egress {
namespace {

constexpr const char* kPassthroughHelps = "network.tls_passthrough leaves the host's connections whole";

bool server_speaks(const Endpoint& server) {
  char byte = 0;
  return ::recv(server.fd.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

// The client could not read a word of ours, or had an alert: it stands in the record.
void end_record(ConnectionState& state, Problem problem) {
  if (problem.violation) state.note_violation(problem);
  state.end_record(std::move(problem.reason));
}

// --- HTTP/2 with a client: the connection that carries its streams. Those that serve one each begin with its head (connection.cc),
// and go through the same phases as a request that came alone.

constexpr std::size_t kFrames = 64U << 10;    // read before those who wait for them get a turn
constexpr std::size_t kMostOut = 256U << 10;  // of frames for a client that takes none: then nothing is read from it
constexpr int kRounds = 16;

class CarryingStreams final : public Phase {
 public:
  explicit CarryingStreams(ConnectionState& state)
      : Phase(state, state.timeouts().idle_client), streams_(state.context.options.interceptor->begin_streams()) {}
  bool has_begun() const override { return true; }
  Next go() override {
    bool moved = false;
    for (int round = 0; round < kRounds; ++round) {
      const bool more = move_frames();
      moved = moved || more;
      note_malformed();
      for (auto& stream : streams_->take_opened()) hand_out(std::move(stream));
      if (!more) break;
      if (round + 1 == kRounds) context_.woken.insert(state_.id);  // others first
    }
    const bool ended = streams_->over() && client_.out.empty();
    if (client_.broken || client_.eof || ended) return leave_streams();
    renew_patience(moved);
    return {};
  }
  Next late() override {
    streams_->end();
    client_.out += streams_->take(kMostOut);
    return leave_streams();
  }

 private:
  enum class Carrying { kNothing, kHead, kStreams };
  // Both ways, a piece each. True: something went.
  bool move_frames() {
    if (client_.out.size() < kMostOut) client_.out += streams_->take(kMostOut - client_.out.size());
    const std::size_t sent = client_.flush();
    if (client_.out.size() >= kMostOut) return sent != 0;
    const std::size_t read = client_.read(kFrames);
    streams_->put(std::exchange(client_.in, {}));
    return sent != 0 || read != 0;
  }
  // The first has the server that was dialled for the tunnel.
  void hand_out(std::shared_ptr<Stream> stream) {
    stream->socket = client_.fd.get();
    stream->wake_carrier = [&context = context_, id = state_.id] { context.woken.insert(id); };
    NewStream begun{.stream = std::move(stream),
                    .carrier = state_.id,
                    .client_kind = state_.client_kind,
                    .direct = state_.direct,
                    .place = *state_.tunnel,
                    .server = {},
                    .address = {}};
    if (server_.fd.valid()) {
      ::epoll_ctl(context_.epoll, EPOLL_CTL_DEL, server_.fd.get(), nullptr);
      begun.server = std::exchange(server_, Endpoint{});
      begun.address = state_.record.address;
    }
    state_.recording = false;  // what asked for the tunnel; what is asked in it has records of its own
    context_.new_streams.push_back(std::move(begun));
  }
  // What is no HTTP never becomes a request: its stream is reset, and that is all that anybody hears of it.
  void note_malformed() {
    for (std::size_t left = streams_->take_malformed(); left != 0; --left) {
      asked_ = {};
      asked_.destination = *state_.tunnel;
      const std::string address = std::exchange(state_.record.address, {});
      state_.begin_record(Protocol::kHttps);
      state_.end_record("malformed");
      state_.record.address = address;
    }
  }
  // A client without requests, or within the head of one, is not given more time by what else it says.
  void renew_patience(bool moved) {
    const Carrying now = streams_->reads_head()   ? Carrying::kHead
                         : streams_->count() != 0 ? Carrying::kStreams
                                                  : Carrying::kNothing;
    const bool goes_on = now == Carrying::kStreams && moved;
    if (std::exchange(carrying_, now) == now && !goes_on) return;
    const auto& timeouts = state_.timeouts();
    // Those who serve a stream have their own patience; this is for a client that takes nothing of what they left.
    state_.wait(now == Carrying::kHead ? timeouts.head : now == Carrying::kStreams ? 2 * timeouts.answer : timeouts.idle_client);
  }
  // Who still serves one is told that it is gone.
  Next leave_streams() { return streams_.reset(), leave(state_); }

  std::unique_ptr<Streams> streams_;
  Carrying carrying_ = Carrying::kNothing;
};

// --- TLS

// By a certificate of ours. Leaves a client whose bytes are what is in its TLS.
class ClientTls final : public Phase {
 public:
  ClientTls(ConnectionState& state, std::unique_ptr<SecureStream> stream) : Phase(state, state.timeouts().head) {
    client_.begin_secure(std::move(stream));
  }
  bool has_begun() const override { return true; }
  Next go() override {
    const auto state = client_.shake_hands();
    if (state == SecureStream::State::kMore) return wait_for_client();
    if (state == SecureStream::State::kFailed) return fail();
    return client_.secure->protocol() == "h2" ? begin_streams(state_) : begin_first_byte(state_);
  }

 private:
  Next fail() {
    const TlsFault fault = client_.secure->fault();
    Problem problem = denied(fault.reason, "network.allowed_domains",
                             format("TLS with the client of {} did not come about: {}", to_string(*state_.tunnel), fault.text),
                             kPassthroughHelps);
    problem.violation = fault.reason == "tls-sni";
    end_record(state_, std::move(problem));
    state_.drop_server();
    client_.secure.reset();  // what else it sends is dropped as it is
    return close_politely(state_);
  }
};

// What the client sends first into the tunnel says what it is. Leaves `tunnel`, unless nobody looks into it.
class Peek final : public Phase {
 public:
  explicit Peek(ConnectionState& state) : Phase(state, state.timeouts().idle_client) { state.tunnel = state.asked.destination; }
  bool has_begun() const override { return true; }
  Next go() override {
    client_.flush();
    if (client_.in.empty()) client_.read(kMaxHead);
    if (client_.in.empty() && server_speaks(server_) && may_pass_through(state_))
      return pass_through();  // it speaks first: SSH, mail
    if (client_.in.empty()) return wait_for_client();
    const char first = client_.in[0];
    if (first >= 'A' && first <= 'Z' && !begins_other(client_.in)) return begin_head(state_);  // in the clear, judged as such
    if (first != kTlsHandshake && may_pass_through(state_)) return pass_through();
    auto stream = first == kTlsHandshake ? context_.options.interceptor->accept(state_.tunnel->host) : nullptr;
    if (stream != nullptr) return std::make_unique<ClientTls>(state_, std::move(stream));
    end_record(state_, denied("method", context_.options.interception.limited ? "network.methods" : "network.allowed_requests",
                              "only HTTP and TLS are looked into, and this is neither", kPassthroughHelps));
    return give_up(state_);
  }

 private:
  // Nobody judges what is in it, but a value of the host's may come back in the clear.
  Next pass_through() {
    state_.guard.begin(context_.options.credentials.known_to(state_.tunnel->host));
    state_.tunnel.reset();
    return begin_tunnel(state_);
  }
};

// Needs a request, and the server that it goes to.
class ServerTls final : public Phase {
 public:
  ServerTls(ConnectionState& state, std::unique_ptr<SecureStream> stream) : Phase(state, state.timeouts().dial) {
    server_.begin_secure(std::move(stream));
  }
  Next go() override {
    const auto state = server_.shake_hands();
    if (state == SecureStream::State::kReady) return begin_exchange(state_);
    if (client_.hung) return give_up(state_);
    const bool ended = server_.eof || server_.broken;
    if (state == SecureStream::State::kMore && !ended) return {};
    TlsFault fault = server_.secure->fault();
    if (state == SecureStream::State::kMore) fault = {"tls", "connection_terminated", "it closed the connection"};
    return refuse(state_, Problem{fault.reason,
                                  {502, fault.error, format("no TLS with {}: {}", to_string(asked_.destination), fault.text),
                                   fault.reason == "tls-untrusted" ? "network.tls_ca_file names further roots" : ""}});
  }
  Next late() override {
    const std::string why = format("{} does not answer to TLS", to_string(asked_.destination));
    return refuse(state_, Problem{"tls", {504, "connection_timeout", why, ""}});
  }
};

}  // namespace

Next begin_peek(ConnectionState& state) { return std::make_unique<Peek>(state); }

Next begin_server_tls(ConnectionState& state) {
  const Offer offer = state.asked.stream ? Offer::kHttp2 : Offer::kHttp1;
  auto stream = state.context.options.interceptor->connect(state.asked.destination.host, offer);
  if (stream != nullptr) return std::make_unique<ServerTls>(state, std::move(stream));
  return refuse(state, Problem{"tls", {502, "tls_protocol_error", "TLS with the server cannot begin", ""}});
}

Next begin_streams(ConnectionState& state) { return std::make_unique<CarryingStreams>(state); }

}  // namespace belljar::egress
