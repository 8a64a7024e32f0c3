#include "kernel/unix_diag.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/unique_fd.h"

namespace belljar::kernel {
namespace {

struct Request {
  nlmsghdr header;
  unix_diag_req body;
};

// 20 bits of minor number, as the kernel keeps it (linux/kdev_t.h).
dev_t from_kernel(std::uint32_t device) noexcept { return makedev(device >> 20U, device & 0xfffffU); }

int read_binding(const char* data, std::size_t size, UnixBinding& binding) noexcept {
  nlmsghdr header{};
  if (size < sizeof header) return -EPROTO;
  std::memcpy(&header, data, sizeof header);
  if (header.nlmsg_type == NLMSG_ERROR) {
    nlmsgerr error{};
    if (size < NLMSG_LENGTH(sizeof error)) return -EPROTO;
    std::memcpy(&error, data + NLMSG_HDRLEN, sizeof error);
    return error.error < 0 ? error.error : -EPROTO;
  }
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY || header.nlmsg_len > size) return -EPROTO;
  for (std::size_t at = NLMSG_LENGTH(sizeof(unix_diag_msg)); at + sizeof(rtattr) <= header.nlmsg_len;) {
    rtattr attribute{};
    std::memcpy(&attribute, data + at, sizeof attribute);
    if (attribute.rta_len < sizeof attribute) break;
    unix_diag_vfs file{};
    if (attribute.rta_type == UNIX_DIAG_VFS && attribute.rta_len >= RTA_LENGTH(sizeof file)) {
      std::memcpy(&file, data + at + RTA_LENGTH(0), sizeof file);
      binding = {file.udiag_vfs_ino, from_kernel(file.udiag_vfs_dev)};
      return 0;
    }
    at += RTA_ALIGN(attribute.rta_len);
  }
  return -ENODATA;
}

}  // namespace

int identify_unix_socket(int socket, UnixSocketId& id) noexcept {
  struct stat now{};
  if (::fstat(socket, &now) != 0) return -errno;
  socklen_t size = sizeof id.cookie;
  if (::getsockopt(socket, SOL_SOCKET, SO_COOKIE, &id.cookie, &size) != 0) return -errno;
  id.inode = static_cast<std::uint32_t>(now.st_ino);
  return 0;
}

int find_unix_binding(const UnixSocketId& id, UnixBinding& binding) noexcept {
  const UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!socket.valid()) return -errno;
  Request request{};
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.body.sdiag_family = AF_UNIX;
  request.body.udiag_states = ~0U;
  request.body.udiag_ino = id.inode;
  request.body.udiag_show = UDIAG_SHOW_VFS;
  request.body.udiag_cookie[0] = static_cast<std::uint32_t>(id.cookie);
  request.body.udiag_cookie[1] = static_cast<std::uint32_t>(id.cookie >> 32U);
  if (::send(socket.get(), &request, sizeof request, 0) < 0) return -errno;
  alignas(nlmsghdr) char answer[1024];
  const ssize_t size = ::recv(socket.get(), answer, sizeof answer, 0);
  return size < 0 ? -errno : read_binding(answer, static_cast<std::size_t>(size), binding);
}

dev_t file_system_device(int file) noexcept {
  constexpr unsigned kMountId = 0x1000;  // STATX_MNT_ID, Linux 5.8
  struct statx facts{};
  if (::statx(file, "", AT_EMPTY_PATH, kMountId, &facts) != 0 || (facts.stx_mask & kMountId) == 0) return 0;
  struct Close {
    void operator()(FILE* stream) const noexcept { (void)std::fclose(stream); }
  };
  const std::unique_ptr<FILE, Close> mounts(std::fopen("/proc/self/mountinfo", "re"));
  if (mounts == nullptr) return 0;
  char line[4096];
  bool at_start = true;  // of a line: long ones come in pieces
  while (std::fgets(line, sizeof line, mounts.get()) != nullptr) {
    unsigned long long id = 0;
    unsigned major_number = 0, minor_number = 0;
    // NOLINTNEXTLINE(cert-err34-c): numbers of the kernel's own
    if (at_start && std::sscanf(line, "%llu %*u %u:%u", &id, &major_number, &minor_number) == 3 && id == facts.stx_mnt_id)
      return makedev(major_number, minor_number);
    at_start = std::strchr(line, '\n') != nullptr;
  }
  return 0;
}

}  // namespace belljar::kernel
