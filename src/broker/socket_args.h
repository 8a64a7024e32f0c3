// What bind(2), connect(2) and listen(2) are called with, taken from the caller.
#pragma once

#include "base/unique_fd.h"
#include "broker/caller.h"
#include "broker/notification.h"
#include "broker/sockaddr.h"

namespace belljar::broker {

constexpr int kGoOn = 1;  // instead of 0 or -errno: the kernel is to do the call itself

struct SocketArgs {
  UniqueFd socket;  // the caller's, duplicated: nobody can exchange it
  Address address;
};

// 0, or -errno as the kernel would: EBADF first, then the address (net/socket.c).
int read_socket_args(Caller& caller, const Call& call, SocketArgs& args);

// Of SOL_SOCKET; -1 when it is no socket, or has no such option.
int socket_option(int socket, int name) noexcept;

}  // namespace belljar::broker
