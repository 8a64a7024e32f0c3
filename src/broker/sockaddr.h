// What a socket address names, read as the kernel reads it (net/unix/af_unix.c: unix_validate_addr, unix_mkname_bsd). Pure.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace belljar::broker {

// A private copy of what the caller passed to connect(2): at most sizeof(sockaddr_storage), as the kernel takes.
struct Address {
  alignas(sockaddr_storage) std::array<std::byte, sizeof(sockaddr_storage)> bytes{};
  socklen_t length = 0;
};

struct UnixName {
  enum class Kind {
    kNone,      // no AF_UNIX name: the kernel refuses the address by itself (too short, too long, another family)
    kAbstract,  // `name` without the leading NUL; may hold any byte
    kPath,      // `name` ends at the first NUL or at the end of the address, whichever comes first; never empty
  };
  Kind kind = Kind::kNone;
  std::string_view name;  // into the address
};

UnixName decode_unix(const Address& address) noexcept;

// "192.0.2.1:443", "[2001:db8::1]:443"; an IPv4-mapped address as the IPv4 one that is meant. Empty for other families, for
// loopback and for port 0 (programs connect a datagram socket there to learn their own address: nothing can be reached by it).
std::string internet_name(const Address& address);

// The same for every address of the two families, loopback and port 0 included.
std::string endpoint_name(const Address& address);

// A netlink address that names another peer than the kernel: a port or multicast groups.
bool names_netlink_peer(const Address& address) noexcept;

// A descriptor written as a path: "/proc/self/fd/7/rest". The caller's own /proc/self is not ours, and openat2(2) cannot follow
// such links under RESOLVE_IN_ROOT, so the broker takes them apart by name.
struct SelfPath {
  enum class Kind { kNone, kFd, kCwd, kRoot };
  Kind kind = Kind::kNone;
  int fd = -1;            // kFd
  std::string_view rest;  // what follows, without leading slashes; may be empty
};

SelfPath decode_self_path(std::string_view path) noexcept;

}  // namespace belljar::broker
