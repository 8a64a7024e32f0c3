// A tunnel that is looked into: TLS with the client as the host it asked for, each request in it judged like one in the clear, TLS
// with the server; and HTTP/2 in it.
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

bool server_speaks(const End& server) {
  char byte = 0;
  return ::recv(server.fd.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

// The client could not read a word of ours, or had an alert: it stands in the record.
void end_record(Talk& talk, Problem problem) {
  if (problem.violation) talk.note_violation(problem);
  talk.end_record(std::move(problem.reason));
}

// --- HTTP/2 with a client: the connection that carries its streams. Those that serve one each begin with its head (connection.cc),
// and go through the same phases as a request that came alone.

constexpr std::size_t kFrames = 64U << 10;    // read before those who wait for them get a turn
constexpr std::size_t kMostOut = 256U << 10;  // of frames for a client that takes none: then nothing is read from it
constexpr int kRounds = 16;

class CarryingStreams final : public Phase {
 public:
  explicit CarryingStreams(Talk& talk)
      : Phase(talk, talk.timeouts().idle_client), streams_(talk.context.options.interceptor->begin_streams()) {}
  bool has_begun() const override { return true; }
  Next go() override {
    bool moved = false;
    for (int round = 0; round < kRounds; ++round) {
      const bool more = move_frames();
      moved = moved || more;
      note_malformed();
      for (auto& stream : streams_->take_opened()) bear(std::move(stream));
      if (!more) break;
      if (round + 1 == kRounds) context_.woken.insert(talk_.id);  // others first
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
  void bear(std::shared_ptr<Stream> stream) {
    stream->socket = client_.fd.get();
    stream->wake_carrier = [&context = context_, id = talk_.id] { context.woken.insert(id); };
    Born born{.stream = std::move(stream),
              .carrier = talk_.id,
              .way = talk_.way,
              .direct = talk_.direct,
              .place = *talk_.tunnel,
              .server = {},
              .address = {}};
    if (server_.fd.valid()) {
      ::epoll_ctl(context_.epoll, EPOLL_CTL_DEL, server_.fd.get(), nullptr);
      born.server = std::exchange(server_, End{});
      born.address = talk_.record.address;
    }
    talk_.recording = false;  // what asked for the tunnel; what is asked in it has records of its own
    context_.born.push_back(std::move(born));
  }
  // What is no HTTP never becomes a request: its stream is reset, and that is all that anybody hears of it.
  void note_malformed() {
    for (std::size_t left = streams_->take_malformed(); left != 0; --left) {
      asked_ = {};
      asked_.destination = *talk_.tunnel;
      const std::string address = std::exchange(talk_.record.address, {});
      talk_.begin_record(Protocol::kHttps);
      talk_.end_record("malformed");
      talk_.record.address = address;
    }
  }
  // A client without requests, or within the head of one, is not given more time by what else it says.
  void renew_patience(bool moved) {
    const Carrying now = streams_->reads_head()   ? Carrying::kHead
                         : streams_->count() != 0 ? Carrying::kStreams
                                                  : Carrying::kNothing;
    const bool goes_on = now == Carrying::kStreams && moved;
    if (std::exchange(carrying_, now) == now && !goes_on) return;
    const auto& timeouts = talk_.timeouts();
    // Those who serve a stream have their own patience; this is for a client that takes nothing of what they left.
    talk_.wait(now == Carrying::kHead ? timeouts.head : now == Carrying::kStreams ? 2 * timeouts.answer : timeouts.idle_client);
  }
  // Who still serves one is told that it is gone.
  Next leave_streams() { return streams_.reset(), leave(talk_); }

  std::unique_ptr<Streams> streams_;
  Carrying carrying_ = Carrying::kNothing;
};

// --- TLS

// By a certificate of ours. Leaves a client whose bytes are what is in its TLS.
class ClientTls final : public Phase {
 public:
  ClientTls(Talk& talk, std::unique_ptr<SecureStream> stream) : Phase(talk, talk.timeouts().head) {
    client_.begin_secure(std::move(stream));
  }
  bool has_begun() const override { return true; }
  Next go() override {
    const auto state = client_.shake_hands();
    if (state == SecureStream::State::kMore) return wait_for_client();
    if (state == SecureStream::State::kFailed) return fail();
    return client_.secure->protocol() == "h2" ? begin_streams(talk_) : begin_first_byte(talk_);
  }

 private:
  Next fail() {
    const TlsFault fault = client_.secure->fault();
    Problem problem =
        denied(fault.reason, "network.allowed_domains",
               format("TLS with the client of {} did not come about: {}", to_string(*talk_.tunnel), fault.text), kPassthroughHelps);
    problem.violation = fault.reason == "tls-sni";
    end_record(talk_, std::move(problem));
    talk_.drop_server();
    client_.secure.reset();  // what else it sends is dropped as it is
    return close_politely(talk_);
  }
};

// What the client sends first into the tunnel says what it is. Leaves `tunnel`, unless nobody looks into it.
class Peek final : public Phase {
 public:
  explicit Peek(Talk& talk) : Phase(talk, talk.timeouts().idle_client) { talk.tunnel = talk.asked.destination; }
  bool has_begun() const override { return true; }
  Next go() override {
    client_.flush();
    if (client_.in.empty()) client_.read(kMaxHead);
    if (client_.in.empty() && server_speaks(server_) && may_stay_whole(talk_)) return stay_whole();  // it speaks first: SSH, mail
    if (client_.in.empty()) return wait_for_client();
    const char first = client_.in[0];
    if (first >= 'A' && first <= 'Z' && !begins_other(client_.in)) return begin_head(talk_);  // in the clear, judged as such
    if (first != kTlsHandshake && may_stay_whole(talk_)) return stay_whole();
    auto stream = first == kTlsHandshake ? context_.options.interceptor->accept(talk_.tunnel->host) : nullptr;
    if (stream != nullptr) return std::make_unique<ClientTls>(talk_, std::move(stream));
    end_record(talk_, denied("method", context_.options.look.limited ? "network.methods" : "network.allowed_requests",
                             "only HTTP and TLS are looked into, and this is neither", kPassthroughHelps));
    return give_up(talk_);
  }

 private:
  // Nobody judges what is in it, but a value of the host's may come back in the clear.
  Next stay_whole() {
    talk_.guard.begin(context_.options.credentials.known_to(talk_.tunnel->host));
    talk_.tunnel.reset();
    return begin_tunnel(talk_);
  }
};

// Needs a request, and the server that it goes to.
class ServerTls final : public Phase {
 public:
  ServerTls(Talk& talk, std::unique_ptr<SecureStream> stream) : Phase(talk, talk.timeouts().dial) {
    server_.begin_secure(std::move(stream));
  }
  Next go() override {
    const auto state = server_.shake_hands();
    if (state == SecureStream::State::kReady) return begin_exchange(talk_);
    if (client_.hung) return give_up(talk_);
    const bool ended = server_.eof || server_.broken;
    if (state == SecureStream::State::kMore && !ended) return {};
    TlsFault fault = server_.secure->fault();
    if (state == SecureStream::State::kMore) fault = {"tls", "connection_terminated", "it closed the connection"};
    return refuse(talk_, Problem{fault.reason,
                                 {502, fault.error, format("no TLS with {}: {}", to_string(asked_.destination), fault.text),
                                  fault.reason == "tls-untrusted" ? "network.tls_ca_file names further roots" : ""}});
  }
  Next late() override {
    const std::string why = format("{} does not answer to TLS", to_string(asked_.destination));
    return refuse(talk_, Problem{"tls", {504, "connection_timeout", why, ""}});
  }
};

}  // namespace

Next begin_peek(Talk& talk) { return std::make_unique<Peek>(talk); }

Next begin_server_tls(Talk& talk) {
  const Offer offer = talk.asked.stream ? Offer::kHttp2 : Offer::kHttp1;
  auto stream = talk.context.options.interceptor->connect(talk.asked.destination.host, offer);
  if (stream != nullptr) return std::make_unique<ServerTls>(talk, std::move(stream));
  return refuse(talk, Problem{"tls", {502, "tls_protocol_error", "TLS with the server cannot begin", ""}});
}

Next begin_streams(Talk& talk) { return std::make_unique<CarryingStreams>(talk); }

}  // namespace belljar::egress
