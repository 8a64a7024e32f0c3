#include "broker/local_ports.h"

#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <utility>

#include "broker/sockaddr.h"
#include "broker/socket_args.h"

namespace belljar::broker {
namespace {

constexpr char kAllowedWithoutPorts[] = "Unix sockets, UDP, and connections that the command makes itself";

}  // namespace

bool takes_port(int socket) noexcept {
  const int type = socket_option(socket, SO_TYPE);
  return (type == SOCK_STREAM || type == SOCK_SEQPACKET) && socket_option(socket, SO_DOMAIN) != AF_UNIX;
}

int refuse_port(Context& context, const Caller& caller, std::string operation, const Address& address) {
  return context.refuse(caller, std::move(operation), endpoint_name(address), EACCES, kAllowedWithoutPorts,
                        "network.allow_local_binding");
}

Address address_of(int socket) noexcept {
  Address address;
  socklen_t size = address.bytes.size();
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(address.bytes.data()), &size) == 0) address.length = size;
  return address;
}

}  // namespace belljar::broker
