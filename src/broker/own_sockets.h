// The socket inodes that processes of this sandbox listen on, each held open.
//
// Held open means: its inode number cannot be given to another file while the entry lives, so (st_dev, st_ino) identifies it on any
// file system; and a connection is made to the held descriptor, so even a file system that lies about inode numbers (FUSE) can
// only lead a caller to a socket of its own sandbox. An inode is bound once in its life (bind(2) always makes a new one), so an
// entry never turns into somebody else's socket. Safe from any thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "base/unique_fd.h"

namespace belljar::broker {

// What connect(2) would find behind the O_PATH descriptor `file`, in the kernel's words: tried with a datagram socket of our own,
// which no stream listener accepts, so its owner notices nothing. Uses the calling thread's permissions. -ECONNREFUSED: no live
// socket; 0, -EPROTOTYPE, -EPERM: a live one (is_alive); others, -EACCES above all: what the kernel refuses by itself.
int peek(int file) noexcept;
bool is_alive(int peeked) noexcept;

class OwnSockets {
 public:
  using Held = std::shared_ptr<const UniqueFd>;

  explicit OwnSockets(std::size_t limit) noexcept : limit_(limit) {}

  // Keeps `file`, the O_PATH descriptor of a bound socket's inode. False when `limit` sockets are alive.
  bool note(UniqueFd file);
  // The held descriptor of the same inode, or none.
  Held find(int file) const noexcept;

 private:
  struct Entry {
    dev_t device;
    ino_t inode;
    Held file;
  };
  void drop_dead();

  const std::size_t limit_;
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;   // guarded by mutex_
  std::size_t next_sweep_ = 16;  // guarded by mutex_; look for dead ones at this size
};

}  // namespace belljar::broker
