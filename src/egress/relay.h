// Two ends of a connection and the bytes between them, without blocking. Used by the proxy's one thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "egress/intercept.h"

namespace belljar::egress {

// One socket, or with `secure` alone one stream of a connection that carries several. `readable` and `writable` are what
// edge-triggered epoll said last; a call that would block clears them.
struct Endpoint {
  UniqueFd fd;
  bool readable = false, writable = false;
  bool eof = false;     // it will send no more
  bool shut = false;    // we will send no more
  bool broken = false;  // reset, or another error
  bool hung = false;    // epoll says so: both directions are closed, or there is an error
  bool cut = false;     // with `secure`: the peer is gone without the word that it sends no more
  std::string in, out;
  std::unique_ptr<SecureStream> secure;  // the socket's bytes are TLS; `in` and `out` are the plain text

  // Reads until it would block or `in` holds `most`. Returns how many bytes came.
  std::size_t read(std::size_t most);
  // Writes what `out` holds, as far as it goes. Returns how many bytes went.
  std::size_t flush();
  // TLS from here on; bytes that were read already are its beginning.
  void begin_secure(std::unique_ptr<SecureStream> stream);
  // With `secure`, until it is no longer kMore: reads and writes what the handshake needs.
  SecureStream::State shake_hands();
  bool may_read() const noexcept { return readable || more_; }
  void shut_down();
  // The peer takes nothing more. Bytes that it sent before are still read into `in`: a server that refuses a
  // large upload says why, closes, and resets the rest.
  void break_off();
  // Closes with a reset, so that the peer sees a cut. Bytes that its kernel has not taken yet are lost.
  void abort();
  // Bytes that the peer's kernel has not taken; 0 of a connection that is over.
  std::size_t count_unsent() const;
  // True: flush() could go on with `out` although no event has come, because the peer gave room in something
  // that was read.
  bool may_seal() const { return secure != nullptr && !out.empty() && wire_.empty() && secure->room() != 0; }

 private:
  bool receive();    // some bytes of the socket into `secure`; false: none
  bool send_wire();  // true: all of it is gone
  std::size_t read_secure(std::size_t most);
  std::size_t flush_secure();
  std::string wire_;        // sealed, still to be sent
  std::size_t sealed_ = 0;  // so many bytes of `out` are in it
  bool more_ = false;       // `secure` holds more than was asked for
};

struct Pipe {
  UniqueFd read, write;
  bool valid() const noexcept { return read.valid(); }
};

// Pipes wait here between bursts: an idle tunnel has none.
class PipePool {
 public:
  Pipe take();  // invalid when the process has no descriptors left
  void give(Pipe pipe);

 private:
  std::vector<Pipe> idle_;
};

// One direction of a tunnel.
class Direction {
 public:
  Direction(Endpoint& from, Endpoint& to) : from_(&from), to_(&to) {}
  // Moves what can be moved, at most `budget` times. True: there is more to do at once.
  bool pump(PipePool& pool, int budget);
  bool done() const noexcept { return done_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  void give_back(PipePool& pool);
  // Hands `to` what `from` had said before it broke off, at most 1 MiB. Takes `most` of it at a time, when `to` has nothing more to
  // write. True: that was all.
  bool deliver_rest(std::size_t most);
  // Everything goes through `filter` on its way (a credential that must not come back); `last` is said once, with the last of it.
  using Filter = std::function<std::string(std::string bytes, bool last)>;
  void set_filter(Filter filter) { filter_ = std::move(filter); }

 private:
  bool by_hand() const noexcept { return from_->secure != nullptr || to_->secure != nullptr || filter_ != nullptr; }
  bool fill(PipePool& pool);
  bool drain();
  Endpoint* from_;
  Endpoint* to_;
  Pipe pipe_;
  Filter filter_;
  std::size_t piped_ = 0;
  std::uint64_t bytes_ = 0;
  bool done_ = false;
};

}  // namespace belljar::egress
