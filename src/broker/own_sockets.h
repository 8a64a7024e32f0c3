// The socket inodes that processes of this sandbox listen on, each held open.
//
// Held open means: its inode number cannot be given to another file while the entry lives, so (st_dev, st_ino) identifies it on any
// file system; and a connection is made to the held descriptor, so even a file system that lies about inode numbers (FUSE) can
// only lead a caller to a socket of its own sandbox. An inode is bound once in its life (bind(2) always makes a new one), so an
// entry never turns into somebody else's socket. Safe from any thread.
//
// Where the kernel does not hand out the inode (SIOCUNIXFILE asks for CAP_NET_ADMIN over the network, which an ordinary user has
// not over the host's), what is kept is which socket it was and what unix_diag says it is bound to. A connect then asks whether
// that very socket still lives and is bound to the inode that the caller's path leads to; if so the inode is held from then on.
// unix_diag has half of the inode's number, and on a large xfs a command can make another file with that half: so the inode must
// also be the caller's own and be born during the run, which a service of the host that stood before it is not.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <ctime>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "base/unique_fd.h"
#include "kernel/unix_diag.h"

namespace belljar::broker {

// What connect(2) would find behind the O_PATH descriptor `file`, in the kernel's words: tried with a datagram socket of our own,
// which no stream listener accepts, so its owner notices nothing. Uses the calling thread's permissions. -ECONNREFUSED: no live
// socket; 0, -EPROTOTYPE, -EPERM: a live one (is_alive); others, -EACCES above all: what the kernel refuses by itself.
int peek(int file) noexcept;
bool is_alive(int peeked) noexcept;

class OwnSockets {
 public:
  using SocketRef = std::shared_ptr<const UniqueFd>;

  // `began`, `uid`: when the run began, by CLOCK_REALTIME_COARSE, and whose sockets are its own; of what unix_diag tells.
  OwnSockets(std::size_t limit, const timespec& began, uid_t uid) noexcept : limit_(limit), began_(began), uid_(uid) {}

  // Keeps `file`, the O_PATH descriptor of a bound socket's inode. False when `limit` sockets are alive.
  bool note(UniqueFd file);
  // The same for a socket of our own network namespace whose inode we may not have. -errno where the kernel does not tell.
  int note(const kernel::UnixSocketId& socket);
  // The descriptor that is kept of the same inode, or none.
  SocketRef find(int file);
  // Its server may be on the way to listen: it was made since the run began, by somebody inside or by the host meanwhile, and
  // nobody has waited for it in vain. A clock's tick (up to 10 ms) is one time: a socket that the host made just before counts,
  // too.
  bool is_new(int file) const;
  void waited_in_vain(int file);

 private:
  struct Entry {
    dev_t device;
    ino_t inode;
    SocketRef file;
  };
  struct Bound {
    kernel::UnixSocketId socket;
    kernel::UnixBinding file;
  };
  struct Inode {
    dev_t device;
    ino_t number;
    bool operator==(const Inode&) const = default;
  };
  static constexpr std::size_t kMostWaited = 64;
  void drop_dead();
  SocketRef find_held(dev_t device, ino_t inode) const;
  bool is_bound(int file, dev_t device, ino_t inode) const;

  const std::size_t limit_;
  const timespec began_;
  const uid_t uid_;
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;   // guarded by mutex_
  std::vector<Bound> bound_;     // guarded by mutex_
  std::deque<Inode> waited_;     // guarded by mutex_; the last kMostWaited that waited_in_vain() was told of
  std::size_t next_sweep_ = 16;  // guarded by mutex_; look for dead ones at this size
};

}  // namespace belljar::broker
