// System calls that glibc 2.36 does not wrap, as they are: 0 or a value on success, -errno on failure. Inline and without
// allocation. Remove one when the oldest glibc has it and its header.
#pragma once

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace belljar::kernel::sys {

template <class... Arguments>
inline long call(long number, Arguments... arguments) noexcept {
  const long value = ::syscall(number, arguments...);
  return value < 0 ? -errno : value;
}

// Linux 6.6; the number is the same on all processors.
inline constexpr int kFchmodat2 = 452;

// Files. `how.resolve` takes RESOLVE_*; `how.mode` must be 0 unless it creates (EINVAL).
inline int openat2(int dir_fd, const char* path, const open_how& how) noexcept {
  return static_cast<int>(call(SYS_openat2, dir_fd, path, &how, sizeof how));
}

}  // namespace belljar::kernel::sys
