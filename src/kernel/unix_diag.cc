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

// The bytes of one attribute of an answer; 0 or -errno.
int read_attribute(const char* data, std::size_t size, unsigned short type, void* value, std::size_t value_size) noexcept {
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
    if (attribute.rta_type == type && attribute.rta_len >= RTA_LENGTH(value_size)) {
      std::memcpy(value, data + at + RTA_LENGTH(0), value_size);
      return 0;
    }
    at += RTA_ALIGN(attribute.rta_len);
  }
  return -ENODATA;
}

int ask(int diag, const UnixSocketId& id, std::uint32_t show, unsigned short type, void* value, std::size_t value_size) noexcept {
  Request request{};
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.body.sdiag_family = AF_UNIX;
  request.body.udiag_states = ~0U;
  request.body.udiag_ino = id.inode;
  request.body.udiag_show = show;
  request.body.udiag_cookie[0] = static_cast<std::uint32_t>(id.cookie);
  request.body.udiag_cookie[1] = static_cast<std::uint32_t>(id.cookie >> 32U);
  if (::send(diag, &request, sizeof request, 0) < 0) return -errno;
  alignas(nlmsghdr) char answer[1024];
  const ssize_t size = ::recv(diag, answer, sizeof answer, 0);
  return size < 0 ? -errno : read_attribute(answer, static_cast<std::size_t>(size), type, value, value_size);
}

UniqueFd open_diag() noexcept { return UniqueFd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)); }

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
  const UniqueFd diag = open_diag();
  if (!diag.valid()) return -errno;
  unix_diag_vfs file{};
  if (const int status = ask(diag.get(), id, UDIAG_SHOW_VFS, UNIX_DIAG_VFS, &file, sizeof file); status != 0) return status;
  binding = {file.udiag_vfs_ino, from_kernel(file.udiag_vfs_dev)};
  return 0;
}

int find_unix_peer(int diag, const UnixSocketId& id, std::uint32_t& peer) noexcept {
  const UniqueFd own = diag < 0 ? open_diag() : UniqueFd();
  if (diag < 0 && !own.valid()) return -errno;
  const int status = ask(diag < 0 ? own.get() : diag, id, UDIAG_SHOW_PEER, UNIX_DIAG_PEER, &peer, sizeof peer);
  return status == 0 && peer == 0 ? -ENODATA : status;
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
