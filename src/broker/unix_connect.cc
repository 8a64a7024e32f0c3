#include "broker/unix_connect.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <charconv>
#include <cstring>

namespace belljar::broker {

int connect_to_file(int socket, int file) noexcept {
  constexpr char kPrefix[] = "/proc/self/fd/";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, kPrefix, sizeof kPrefix - 1);
  char* const end = address.sun_path + sizeof address.sun_path - 1;
  std::to_chars(address.sun_path + sizeof kPrefix - 1, end, file);
  return ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : -errno;
}

}  // namespace belljar::broker
