// Finds the process inside that holds the other end of a connection, for the records of refusals. TCP has no
// SO_PEERCRED, so the kernel is asked for the socket's inode (sock_diag(7)), and /proc for the process that
// has it open. A hint and not a ground for a decision: the process may have passed the socket on, or ended.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "base/unique_fd.h"

namespace belljar::egress {

struct Culprit {
  int pid = 0;  // as seen inside; 0: not known
  std::string program;
};

// One thread. A search takes about 20 us a process. Searches take a fifth of the time at most; a connection
// that comes during the pause gets no process.
class Culprits {
 public:
  Culprits() = default;
  Culprits(UniqueFd diag, int init_pid) : diag_(std::move(diag)), init_pid_(init_pid) {}
  // `accepted`: our end of a TCP connection over IPv4.
  Culprit find(int accepted);
  // Who sent a datagram from `peer` (IPv4) to `to` (network order).
  Culprit find_datagram(const sockaddr_storage& peer, std::uint32_t to);

 private:
  Culprit search(int protocol, const sockaddr_storage& client, const sockaddr_storage& server);
  std::uint32_t find_inode(int protocol, const sockaddr_storage& client, const sockaddr_storage& server) const;

  UniqueFd diag_;
  int init_pid_ = 0;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace belljar::egress
