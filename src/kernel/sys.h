// System calls that glibc 2.36 does not wrap, as they are: 0 or a value on success, -errno on failure.
//
// Inline, without errno left behind for others to read, without allocation, cancellation points or locks: fit for the code between
// clone3 and execve. Mount and setup calls of the launcher only; a process under our seccomp filter gets ENOSYS or EPERM from most.
// Remove one when the oldest glibc has it and its header.
#pragma once

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>

namespace belljar::kernel::sys {

template <class... Arguments>
inline long call(long number, Arguments... arguments) noexcept {
  const long value = ::syscall(number, arguments...);
  return value < 0 ? -errno : value;
}

// Linux 6.6; the number is the same on all processors.
inline constexpr int kFchmodat2 = 452;

// Processes. (Only launch/ makes them, so clone3 is there.)
inline int pidfd_open(pid_t pid, unsigned flags = 0) noexcept { return static_cast<int>(call(SYS_pidfd_open, pid, flags)); }
inline int pidfd_send_signal(int pidfd, int signal) noexcept {
  return static_cast<int>(call(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0));
}
// A copy of the other process's descriptor, close-on-exec. Needs the right to ptrace it.
inline int pidfd_getfd(int pidfd, int fd) noexcept { return static_cast<int>(call(SYS_pidfd_getfd, pidfd, fd, 0)); }

// Files. `how.resolve` takes RESOLVE_*; `how.mode` must be 0 unless it creates (EINVAL).
inline int openat2(int dir_fd, const char* path, const open_how& how) noexcept {
  return static_cast<int>(call(SYS_openat2, dir_fd, path, &how, sizeof how));
}
// Both ends included; CLOSE_RANGE_UNSHARE, CLOSE_RANGE_CLOEXEC.
inline int close_range(unsigned first, unsigned last, unsigned flags = 0) noexcept {
  return static_cast<int>(call(SYS_close_range, first, last, flags));
}

// Mounts, Linux 5.2 (mount_setattr 5.12).
inline int open_tree(int dir_fd, const char* path, unsigned flags) noexcept {
  return static_cast<int>(call(SYS_open_tree, dir_fd, path, flags));
}
inline int move_mount(int from_fd, const char* from, int to_fd, const char* to, unsigned flags) noexcept {
  return static_cast<int>(call(SYS_move_mount, from_fd, from, to_fd, to, flags));
}
// `attr` is struct mount_attr: from linux/mount.h or sys/mount.h, which glibc 2.36 does not let one file include both.
template <class MountAttr>
inline int mount_setattr(int dir_fd, const char* path, unsigned flags, const MountAttr& attr) noexcept {
  return static_cast<int>(call(SYS_mount_setattr, dir_fd, path, flags, &attr, sizeof attr));
}
inline int fsopen(const char* type, unsigned flags) noexcept { return static_cast<int>(call(SYS_fsopen, type, flags)); }
inline int fsconfig(int fs_fd, unsigned command, const char* key, const void* value, int aux) noexcept {
  return static_cast<int>(call(SYS_fsconfig, fs_fd, command, key, value, aux));
}
inline int fsmount(int fs_fd, unsigned flags, unsigned attr_flags) noexcept {
  return static_cast<int>(call(SYS_fsmount, fs_fd, flags, attr_flags));
}
inline int pivot_root(const char* new_root, const char* put_old) noexcept {
  return static_cast<int>(call(SYS_pivot_root, new_root, put_old));
}

// Privileges. Empties the permitted, effective and inheritable sets of the calling thread.
inline int drop_all_capabilities() noexcept {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  return static_cast<int>(call(SYS_capset, &header, none));
}
// A fresh, empty session keyring in place of the user's (keyrings are in no namespace). ENOSYS where the kernel has no keys: fine
// then.
inline int join_session_keyring() noexcept {
  const long key = call(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);
  return key < 0 ? static_cast<int>(key) : 0;
}

}  // namespace belljar::kernel::sys
