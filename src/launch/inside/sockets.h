// Sockets of the container's network, made here and served outside: the attach stream carries no descriptors, so they go over a
// unix socket in a directory that is shared for that moment (backend/container/socket_handover.h, which says what is sent).
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace belljar::inside {

inline constexpr size_t kMostSockets = 48;

struct SocketRequest {
  char kind = 0;  // L listening TCP, D UDP that tells where each datagram was sent to, N sock_diag, M the maker's end
  uint32_t address = 0;
  uint16_t port = 0;
};

struct SocketRequests {
  SocketRequest sockets[kMostSockets];
  size_t count = 0;
};

// `text`: the kind, and for L and D "ADDRESS:PORT" as decimal numbers. False: it is none, or there are too many.
bool add_socket(SocketRequests& requests, const char* text);

// Makes them, sends them to who listens at `path` with the errno of each that could not be made, and closes them here. `maker`: our
// end of the maker, which stays; -1 where none was wanted. False: they did not get out, and stderr says why.
bool hand_over_sockets(const char* path, const SocketRequests& requests, int& maker);

// One request of the maker: a new TCP socket for each packet of one byte (4 or 6). False: nobody asks any more.
bool make_socket(int maker);

}  // namespace belljar::inside
