// network.allow_local_binding = false: which sockets it is about, and how they are refused. The lock is listen(2), which is
// performed here and takes a port whether the socket is bound or not; a bind is refused so that a program hears of it where it
// asks.
#pragma once

#include <string>

#include "broker/context.h"
#include "broker/sockaddr.h"

namespace belljar::broker {

// One that others could connect to by a port. Asked of what it is not, not of what it is: a TCP socket can be turned into AF_SMC by
// its owner (TCP_ULP). Datagram sockets are none: a client of DNS or QUIC binds one, too.
bool takes_port(int socket) noexcept;

// Records it and returns -EACCES, Landlock's errno. `operation`: "bind" or "listen".
int refuse_port(Context& context, const Caller& caller, std::string operation, const Address& address);

// Where `socket` is bound.
Address address_of(int socket) noexcept;

}  // namespace belljar::broker
