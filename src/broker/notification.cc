#include "broker/notification.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
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

// Linux 6.6; the headers may be older.
constexpr unsigned long kSetFlags = _IOW(SECCOMP_IOC_MAGIC, 4, std::uint64_t);
constexpr unsigned long kSyncWakeUp = 1;

void respond(int listener, std::uint64_t id, int error, std::uint32_t flags, std::int64_t value = 0) noexcept {
  alignas(seccomp_notif_resp) std::byte buffer[kRoom] = {};
  seccomp_notif_resp response{};
  response.id = id;
  response.error = error;
  response.val = value;
  response.flags = flags;
  std::memcpy(buffer, &response, sizeof response);
  // ENOENT: the caller was killed. There is nobody to tell.
  while (::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, buffer) != 0 && errno == EINTR) {
  }
}

int give_fd(int listener, std::uint64_t id, int fd, bool close_on_exec, std::uint32_t flags, int number) noexcept {
  seccomp_notif_addfd request{};
  request.id = id;
  request.flags = flags;
  request.srcfd = static_cast<std::uint32_t>(fd);
  request.newfd = static_cast<std::uint32_t>(number);
  request.newfd_flags = close_on_exec ? O_CLOEXEC : 0;
  const int given = ::ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &request);
  return given >= 0 ? given : -errno;
}

}  // namespace

void wake_on_this_cpu(int listener) noexcept { ::ioctl(listener, kSetFlags, kSyncWakeUp); }

bool has_waiting(int listener) noexcept {
  pollfd ready{listener, POLLIN, 0};
  return ::poll(&ready, 1, 0) == 1 && (ready.revents & POLLIN) != 0;
}

bool is_over(int listener) noexcept {
  pollfd ready{listener, 0, 0};
  return ::poll(&ready, 1, 0) == 1 && (ready.revents & POLLHUP) != 0;
}

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
  call.arch = notification.data.arch;
  for (std::size_t i = 0; i < call.args.size(); ++i) call.args[i] = notification.data.args[i];
  return 0;
}

bool still_waiting(int listener, std::uint64_t id) noexcept {
  while (::ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) != 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

void answer(int listener, std::uint64_t id, int error) noexcept { respond(listener, id, error, 0); }

void answer_value(int listener, std::uint64_t id, std::int64_t value) noexcept { respond(listener, id, 0, 0, value); }

int add_fd(int listener, std::uint64_t id, int fd, bool close_on_exec) noexcept {
  return give_fd(listener, id, fd, close_on_exec, 0, 0);
}

int add_fd_at(int listener, std::uint64_t id, int fd, bool close_on_exec, int number) noexcept {
  return give_fd(listener, id, fd, close_on_exec, SECCOMP_ADDFD_FLAG_SETFD, number);
}

int add_fd_and_answer(int listener, std::uint64_t id, int fd, bool close_on_exec) noexcept {
  return give_fd(listener, id, fd, close_on_exec, SECCOMP_ADDFD_FLAG_SEND, 0);
}

void let_continue(int listener, std::uint64_t id) noexcept { respond(listener, id, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE); }

}  // namespace belljar::broker
