// HTTP/2 with a client: the connection that carries its streams, and those that serve one each. A stream's request is read, judged,
// dialled and recorded by the same phases as one that came alone.
#include <sys/epoll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "egress/connection.h"
#include "egress/context.h"
#include "egress/http.h"
#include "egress/intercept.h"
#include "egress/relay.h"
#include "egress/streams.h"

namespace belljar::egress {
namespace {

constexpr std::size_t kPiece = 64U << 10;     // of frames read before those who wait for them get a turn
constexpr std::size_t kMostOut = 256U << 10;  // of frames for a client that takes none: then nothing is read from it
constexpr int kRounds = 16;

}  // namespace

// --- one stream

Connection::Connection(Context& context, std::uint64_t id, Born born)
    : context_(context), id_(id), way_(born.way), direct_(std::move(born.direct)), stream_(std::move(born.stream)) {
  stream_->wake_server = [&context, id] { context.woken.insert(id); };
  client_.writable = true;
  client_.begin_secure(std::make_unique<StreamEnd>(stream_));
  tunnel_ = std::move(born.place);
  if (born.server.fd.valid()) {
    server_ = std::move(born.server);
    dialled_ahead_ = true;
    record_.address = std::move(born.address);
    watch(server_.fd.get(), kServer);
  }
  request_.emplace(HttpReader::Kind::kRequest);
  request_->allow_trailers();
  enter(Phase::kHead, context_.options.timeouts.head);
}

// There is no record any more of what asked for the tunnel: so each stream has one, also who is gone before it was looked at.
void Connection::note_unread_stream() {
  if (stream_ != nullptr && !recording_ && phase_ == Phase::kHead) begin_unread();
}

bool Connection::give_up_stream() {
  note_unread_stream();
  return give_up();
}

// What the client has not taken yet is held for it. That is a connection which counts, and whose patience has an end, though its
// server is gone.
bool Connection::close_stream() {
  if (!client_.out.empty()) return false;
  const std::size_t held = stream_->held();
  if (held < std::exchange(held_, held)) deadline_ = Clock::now() + context_.options.timeouts.answer;
  if (held == 0) phase_ = Phase::kOver;
  return false;
}

// --- all of a client's

bool Connection::begin_streams() {
  streams_ = context_.options.interceptor->begin_streams();
  carrying_ = Carrying::kNothing;
  enter(Phase::kStreams, context_.options.timeouts.idle_client);
  return true;
}

bool Connection::carry_streams() {
  bool moved = false;
  for (int round = 0; round < kRounds; ++round) {
    const bool more = move_frames();
    moved = moved || more;
    bear_streams();
    if (!more) break;
    if (round + 1 == kRounds) context_.woken.insert(id_);  // others first
  }
  const bool over = streams_->over() && client_.out.empty();
  if (client_.broken || client_.eof || over) return streams_.reset(), leave();
  set_streams_deadline(moved);
  return false;
}

// Both ways, a piece each. True: something went.
bool Connection::move_frames() {
  if (client_.out.size() < kMostOut) client_.out += streams_->take(kMostOut - client_.out.size());
  const std::size_t sent = client_.flush();
  if (client_.out.size() >= kMostOut) return sent != 0;
  const std::size_t read = client_.read(kPiece);
  streams_->put(std::exchange(client_.in, {}));
  return sent != 0 || read != 0;
}

void Connection::bear_streams() {
  note_malformed();
  for (auto& stream : streams_->take_opened()) {
    stream->socket = client_.fd.get();
    stream->wake_carrier = [&context = context_, id = id_] { context.woken.insert(id); };
    Born born{.stream = std::move(stream),
              .carrier = id_,
              .way = way_,
              .direct = direct_,
              .place = *tunnel_,
              .server = {},
              .address = {}};
    if (std::exchange(dialled_ahead_, false)) {
      ::epoll_ctl(context_.epoll, EPOLL_CTL_DEL, server_.fd.get(), nullptr);
      born.server = std::exchange(server_, End{});
      born.address = record_.address;
    }
    recording_ = false;  // what asked for the tunnel; what is asked in it has records of its own
    context_.born.push_back(std::move(born));
  }
}

// What is no HTTP never becomes a request: its stream is reset, and that is all that anybody hears of it.
void Connection::note_malformed() {
  for (std::size_t left = streams_->take_malformed(); left != 0; --left) {
    asked_ = {};
    asked_.destination = *tunnel_;
    const std::string address = record_.address;
    begin_record(Protocol::kHttps);
    end_record("malformed");
    record_.address = address;
  }
}

// A client without requests, or within the head of one, is not given more time by what else it says.
void Connection::set_streams_deadline(bool moved) {
  const Carrying now = streams_->reads_head() ? Carrying::kHead : streams_->count() != 0 ? Carrying::kStreams : Carrying::kNothing;
  const bool goes_on = now == Carrying::kStreams && moved;
  if (std::exchange(carrying_, now) == now && !goes_on) return;
  const auto& timeouts = context_.options.timeouts;
  // Those who serve a stream have their own patience; this is for a client that takes nothing of what they left.
  const auto patience = now == Carrying::kHead      ? timeouts.head
                        : now == Carrying::kStreams ? 2 * timeouts.answer
                                                    : timeouts.idle_client;
  deadline_ = Clock::now() + patience;
}

bool Connection::end_streams() {
  streams_->end();
  client_.out += streams_->take(kMostOut);
  streams_.reset();  // who still serves one is told that it is gone
  return leave();
}

}  // namespace belljar::egress
