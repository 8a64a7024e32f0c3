// Bytes between two sockets.
//
// A tunnel moves them by splice(2), socket to pipe to socket, so that they are not copied through this
// process. The pipe is taken from a pool when there is something to move and given back when it is empty: an
// idle tunnel holds two descriptors. Where TLS or a filter is between, or no descriptor is left for a pipe,
// bytes go through `in` and `out` instead.
//
// The order in pump() keeps the stream's order: first what waits in `out`, then what is in the pipe, and only
// then a new read. The end of one side is passed on (shutdown) when all before it is delivered, and the other
// direction goes on: half-closed connections are common.
//
// A write that fails does not end the connection at once. A server that refuses a large upload answers,
// closes, and resets what still comes; break_off() reads that answer first, since nobody else will.
#include "egress/relay.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace belljar::egress {
namespace {

constexpr std::size_t kMove = 1 << 20;           // asked of one splice
constexpr int kPipeSize = 256 * 1024;            // where the user's share of pipe memory allows it, pipe(7)
constexpr std::size_t kMostIdlePipes = 16;       //
constexpr std::size_t kCopy = 64UL * 1024;       // without a pipe
constexpr std::size_t kMostWire = 512UL * 1024;  // sealed, for a peer that takes nothing: then nothing is read from it
constexpr std::size_t kMostRest = 1 << 20;       // of what a peer had said before it broke off

bool would_block() noexcept { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

bool Endpoint::receive() {
  while (readable && !eof && !broken) {
    char buffer[16384];
    const ssize_t got = ::recv(fd.get(), buffer, sizeof buffer, 0);
    if (got > 0) return secure->put({buffer, static_cast<std::size_t>(got)}), true;
    if (got == 0) eof = cut = true;
    else if (would_block()) readable = false;
    else if (errno != EINTR) broken = true;
  }
  return false;
}

std::size_t Endpoint::read_secure(std::size_t most) {
  // What is read may want an answer by itself (PING and SETTINGS of HTTP/2, KeyUpdate of TLS).
  if (wire_.size() >= kMostWire && !send_wire() && wire_.size() >= kMostWire) return 0;
  const std::size_t before = in.size();
  do {
    more_ = secure->open(in, most);
    if (secure->ended()) eof = true, cut = false;
    if (secure->broken()) broken = true;
  } while ((secure->reads_ahead() || (!more_ && in.size() < most)) && receive());
  if (eof || broken) more_ = false;
  wire_ += secure->take();  // what TLS itself has to say
  (void)send_wire();
  return in.size() - before;
}

void Endpoint::begin_secure(std::unique_ptr<SecureStream> stream) {
  secure = std::move(stream);
  secure->put(std::exchange(in, {}));
}

SecureStream::State Endpoint::shake_hands() {
  for (;;) {
    const auto state = secure->handshake();
    wire_ += secure->take();
    (void)send_wire();
    if (state != SecureStream::State::kMore || !receive()) return state;
  }
}

bool Endpoint::send_wire() {
  std::size_t sent = 0;
  while (writable && !broken && sent < wire_.size()) {
    const ssize_t part = ::send(fd.get(), wire_.data() + sent, wire_.size() - sent, MSG_NOSIGNAL);
    if (part >= 0) sent += static_cast<std::size_t>(part);
    else if (would_block()) writable = false;
    else if (errno != EINTR) break_off();
  }
  wire_.erase(0, sent);
  return wire_.empty();
}

// `out` keeps what is sealed until it is gone, so that an empty `out` means what it means without TLS.
std::size_t Endpoint::flush_secure() {
  std::size_t total = 0;
  for (;;) {
    if (!send_wire()) return total;
    out.erase(0, sealed_);
    total += std::exchange(sealed_, 0);
    sealed_ = std::min({out.size(), kCopy, secure->room()});
    if (sealed_ == 0) return total;
    secure->seal(std::string_view(out).substr(0, sealed_));
    wire_ += secure->take();
  }
}

std::size_t Endpoint::read(std::size_t most) {
  if (secure) return in.size() < most || secure->reads_ahead() ? read_secure(most) : 0;
  std::size_t total = 0;
  while (readable && !eof && !broken && in.size() < most) {
    char buffer[16384];
    const ssize_t got = ::recv(fd.get(), buffer, std::min(sizeof buffer, most - in.size()), 0);
    if (got > 0) in.append(buffer, static_cast<std::size_t>(got)), total += static_cast<std::size_t>(got);
    else if (got == 0) eof = true;
    else if (would_block()) readable = false;
    else if (errno != EINTR) broken = true;
  }
  return total;
}

std::size_t Endpoint::flush() {
  if (secure) return flush_secure();
  std::size_t total = 0;
  while (writable && !broken && total < out.size()) {
    const ssize_t sent = ::send(fd.get(), out.data() + total, out.size() - total, MSG_NOSIGNAL);
    if (sent >= 0) total += static_cast<std::size_t>(sent);
    else if (would_block()) writable = false;
    else if (errno != EINTR) break_off();
  }
  out.erase(0, total);
  return total;
}

void Endpoint::break_off() {
  char buffer[16384];
  for (std::size_t left = kMostRest / sizeof buffer; left > 0; --left) {
    const ssize_t got = ::recv(fd.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    const std::string_view part(buffer, static_cast<std::size_t>(got));
    if (secure) secure->put(part);
    else in += part;
  }
  broken = true;
}

void Endpoint::shut_down() {
  if (!shut && secure && fd.valid()) {
    secure->end();
    wire_ += secure->take();
    (void)send_wire();  // a peer that takes nothing more need not hear that nothing more comes
  }
  if (!shut && secure && !fd.valid()) secure->end();  // a stream
  if (!shut && fd.valid()) ::shutdown(fd.get(), SHUT_WR);
  shut = true;
}

void Endpoint::abort() {
  if (secure) secure->abort();
  if (!fd.valid()) return;
  const linger none{1, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
  fd.reset();
}

std::size_t Endpoint::count_unsent() const {
  tcp_info info{};
  socklen_t size = sizeof info;
  const bool over = ::getsockopt(fd.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || info.tcpi_state == TCP_CLOSE;
  int queued = 0;
  return over || ::ioctl(fd.get(), SIOCOUTQ, &queued) != 0 ? 0 : static_cast<std::size_t>(queued);
}

Pipe PipePool::take() {
  if (!idle_.empty()) {
    Pipe pipe = std::move(idle_.back());
    idle_.pop_back();
    return pipe;
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return {};
  ::fcntl(ends[1], F_SETPIPE_SZ, kPipeSize);  // refused beyond the user's share: then 64 KiB
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

void PipePool::give(Pipe pipe) {
  if (pipe.valid() && idle_.size() < kMostIdlePipes) idle_.push_back(std::move(pipe));
}

// Out of the pipe; false when it would block or the end is broken.
bool Direction::drain() {
  while (piped_ > 0) {
    if (!to_->writable) return false;
    const ssize_t moved = ::splice(pipe_.read.get(), nullptr, to_->fd.get(), nullptr, piped_, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (moved > 0) {
      piped_ -= static_cast<std::size_t>(moved);
      bytes_ += static_cast<std::uint64_t>(moved);
    } else if (moved < 0 && would_block()) {
      to_->writable = false;
    } else if (moved == 0 || errno != EINTR) {
      to_->break_off();
      return false;
    }
  }
  return true;
}

// Into the pipe, which is empty; false when nothing came.
bool Direction::fill(PipePool& pool) {
  if (!pipe_.valid() && !by_hand()) pipe_ = pool.take();
  if (!pipe_.valid()) {  // TLS at one end, or no descriptor left
    const std::size_t got = from_->read(kCopy);
    bytes_ += got;
    std::string taken = std::exchange(from_->in, {});
    to_->out += filter_ ? filter_(std::move(taken), false) : std::move(taken);
    return got > 0;
  }
  const ssize_t moved = ::splice(from_->fd.get(), nullptr, pipe_.write.get(), nullptr, kMove, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (moved > 0) return piped_ = static_cast<std::size_t>(moved), true;
  if (moved == 0) from_->eof = true;
  else if (would_block()) from_->readable = false;
  else if (errno != EINTR) from_->broken = true;
  return moved < 0 && errno == EINTR;
}

bool Direction::pump(PipePool& pool, int budget) {
  while (!done_) {
    to_->flush();
    if (from_->broken || to_->broken) break;
    if (!to_->out.empty() || !drain()) return false;  // waits for the peer with what it holds
    if (from_->eof && filter_) {
      to_->out += std::exchange(filter_, nullptr)({}, true);
      continue;
    }
    if (from_->eof) {
      to_->shut_down();
      done_ = true;
      break;
    }
    if (!from_->may_read()) break;  // before the budget: who has nothing to read has no more to do
    if (budget-- <= 0) return true;
    if (!fill(pool) && !from_->eof && !from_->broken) break;
  }
  if (piped_ == 0) give_back(pool);
  return false;
}

bool Direction::deliver_rest(std::size_t most) {
  to_->flush();
  if (to_->broken || !to_->out.empty() || !drain()) return false;  // that was said earlier
  if (from_->secure) (void)from_->read(kMostRest);
  std::string part = from_->in.substr(0, most);
  from_->in.erase(0, part.size());
  bytes_ += part.size();
  const bool last = from_->in.empty();
  to_->out += filter_ ? filter_(std::move(part), last) : std::move(part);
  if (last) filter_ = nullptr;
  to_->flush();
  return last;
}

void Direction::give_back(PipePool& pool) {
  if (piped_ == 0 && pipe_.valid()) pool.give(std::exchange(pipe_, {}));
}

}  // namespace belljar::egress
