// Two ends of a connection and the bytes between them, without blocking. Used by the proxy's one thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace belljar::egress {

// One socket. `readable` and `writable` are what edge-triggered epoll said last; a call that would block clears them.
struct End {
  UniqueFd fd;
  bool readable = false, writable = false;
  bool eof = false;     // it will send no more
  bool shut = false;    // we will send no more
  bool broken = false;  // reset, or another error
  bool hung = false;    // epoll says so: both directions are closed, or there is an error
  std::string in, out;

  // Reads until it would block or `in` holds `most`. Returns how many bytes came.
  std::size_t read(std::size_t most);
  // Writes what `out` holds, as far as it goes. Returns how many bytes went.
  std::size_t flush();
  void shut_down();
  // Closes so that the peer sees a reset: what it has is cut short.
  void abort() noexcept;
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
  Direction(End& from, End& to) : from_(&from), to_(&to) {}
  // Moves what can be moved, at most `budget` times. True: there is more to do at once.
  bool pump(PipePool& pool, int budget);
  bool done() const noexcept { return done_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  void give_back(PipePool& pool);

 private:
  bool fill(PipePool& pool);
  bool drain();
  End* from_;
  End* to_;
  Pipe pipe_;
  std::size_t piped_ = 0;
  std::uint64_t bytes_ = 0;
  bool done_ = false;
};

}  // namespace belljar::egress
