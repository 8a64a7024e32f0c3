// Descriptors beside the bytes of a message: SCM_RIGHTS, unix(7). Allocates nothing, so it serves between clone3 and execve, too.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstring>

namespace belljar::kernel {

// As sendmsg(2), with MSG_NOSIGNAL. `count` of `fds` may be 0; at most kMost.
template <std::size_t kMost>
ssize_t send_fds(int socket, const void* bytes, std::size_t size, const int* fds, std::size_t count, int flags = 0) noexcept {
  alignas(cmsghdr) char control[CMSG_SPACE(kMost * sizeof(int))] = {};
  iovec part{const_cast<void*>(bytes), size};  // sendmsg does not write to it
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (count > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds, count * sizeof(int));
  }
  return ::sendmsg(socket, &message, flags | MSG_NOSIGNAL);
}

// What came, close-on-exec and the caller's to close.
template <std::size_t kMost>
struct ReceivedFds {
  ssize_t size = 0;  // as recvmsg(2) returns it
  bool cut = false;  // bytes or descriptors were lost: there was no room for them, here or in our table
  std::size_t count = 0;
  int fds[kMost] = {};
};

// As recvmsg(2). The kernel closes the descriptors that are more than kMost.
template <std::size_t kMost>
ReceivedFds<kMost> receive_fds(int socket, void* bytes, std::size_t size, int flags = 0) noexcept {
  ReceivedFds<kMost> received;
  alignas(cmsghdr) char control[CMSG_SPACE(kMost * sizeof(int))];
  iovec part{bytes, size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_LEN(kMost * sizeof(int));  // not CMSG_SPACE, which has room for one more where kMost is odd
  received.size = ::recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  if (received.size < 0) return received;
  received.cut = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);  // the kernel passes all of them in one
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) return received;
  received.count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  std::memcpy(received.fds, CMSG_DATA(header), received.count * sizeof(int));
  return received;
}

}  // namespace belljar::kernel
