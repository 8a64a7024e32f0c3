// Which file an AF_UNIX socket is bound to, by sock_diag(7): what SIOCUNIXFILE tells only those with CAP_NET_ADMIN over the
// socket's network. The socket must belong to the caller's own network namespace. Nothing here needs a privilege.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace belljar::kernel {

// A socket for its whole life: the cookie is never given to another (SO_COOKIE).
struct UnixSocketId {
  std::uint32_t inode = 0;  // on sockfs
  std::uint64_t cookie = 0;
  bool operator==(const UnixSocketId&) const = default;
};

// The file as the kernel counts it: the lower half of its inode number, and the device of its file system (not always st_dev:
// btrfs has one for each subvolume).
struct UnixBinding {
  std::uint32_t inode = 0;
  dev_t device = 0;
  bool operator==(const UnixBinding&) const = default;
};

// 0 or -errno.
int identify_unix_socket(int socket, UnixSocketId& id) noexcept;
// -ENOENT, -ESTALE: the socket is gone. -ENODATA: it is bound to no file. Others: this kernel does not tell (no unix_diag).
int find_unix_binding(const UnixSocketId& id, UnixBinding& binding) noexcept;
// The inode of the socket that `id` is connected to. `diag`: a socket of NETLINK_SOCK_DIAG that nobody else asks meanwhile, for
// sockets of its network namespace; -1: of our own. -ENODATA: it has no peer, or the peer belongs to no program any more or yet.
int find_unix_peer(int diag, const UnixSocketId& id, std::uint32_t& peer) noexcept;
// The device of the file system that `file` (O_PATH is enough) lies on, as UnixBinding has it; 0 unknown. Reads mountinfo.
dev_t file_system_device(int file) noexcept;

}  // namespace belljar::kernel
