#include "broker/notification.h"

#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace belljar::broker {
namespace {

// The kernel may know larger structures than our headers and writes its own size (SECCOMP_GET_NOTIF_SIZES).
constexpr std::size_t kRoom = 512;

void respond(int listener, std::uint64_t id, int error, std::uint32_t flags) noexcept {
  alignas(seccomp_notif_resp) std::byte buffer[kRoom] = {};
  seccomp_notif_resp response{};
  response.id = id;
  response.error = error;
  response.flags = flags;
  std::memcpy(buffer, &response, sizeof response);
  // ENOENT: the caller was killed. There is nobody to tell.
  while (::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, buffer) != 0 && errno == EINTR) {
  }
}

}  // namespace

int check_listener(int listener) noexcept {
  seccomp_notif_sizes sizes{};
  if (::syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) != 0) return -errno;
  if (sizes.seccomp_notif > kRoom || sizes.seccomp_notif_resp > kRoom) return -E2BIG;
  // Any id will do: a listener answers ENOENT, anything else ENOTTY or EBADF.
  std::uint64_t none = 0;
  if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &none) != 0 && errno != ENOENT) return -errno;
  return 0;
}

int receive(int listener, Call& call) noexcept {
  alignas(seccomp_notif) std::byte buffer[kRoom] = {};
  if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, buffer) != 0) return -errno;
  seccomp_notif notification{};
  std::memcpy(&notification, buffer, sizeof notification);
  call.id = notification.id;
  call.tid = static_cast<pid_t>(notification.pid);
  call.number = notification.data.nr;
  for (std::size_t i = 0; i < call.args.size(); ++i) call.args[i] = notification.data.args[i];
  return 0;
}

bool still_waiting(int listener, std::uint64_t id) noexcept { return ::ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0; }

void answer(int listener, std::uint64_t id, int error) noexcept { respond(listener, id, error, 0); }

void let_continue(int listener, std::uint64_t id) noexcept { respond(listener, id, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE); }

}  // namespace belljar::broker
