// Landlock, wrapped as it is: landlock(7), linux/landlock.h. A second, independent lock on the list of what may be touched.
//
// What it does *not* hold: chmod, chown, utimes, xattrs, stat and chdir are free at every ABI; rules only add up, so nothing below
// an allowed directory can be taken away again; sockets with a path are not judged at connect; UDP never. Descriptors that were
// open before keep their rights.
//
// The constants have our names because Debian 12's header ends at ABI 2. All functions return -errno, allocate nothing and may be
// used between clone3 and execve.
#pragma once

#include <cstdint>

namespace belljar::kernel {

// The version this kernel speaks (tried, not read from uname); 0 when it has no Landlock or the boot line left it out.
int landlock_abi() noexcept;

namespace landlock {

using Rights = std::uint64_t;

inline constexpr Rights kExecute = 1U << 0;
inline constexpr Rights kWriteFile = 1U << 1;
inline constexpr Rights kReadFile = 1U << 2;
inline constexpr Rights kReadDir = 1U << 3;
inline constexpr Rights kRemoveDir = 1U << 4;
inline constexpr Rights kRemoveFile = 1U << 5;
inline constexpr Rights kMakeChar = 1U << 6;
inline constexpr Rights kMakeDir = 1U << 7;
inline constexpr Rights kMakeReg = 1U << 8;
inline constexpr Rights kMakeSock = 1U << 9;
inline constexpr Rights kMakeFifo = 1U << 10;
inline constexpr Rights kMakeBlock = 1U << 11;
inline constexpr Rights kMakeSym = 1U << 12;
inline constexpr Rights kRefer = 1U << 13;     // ABI 2, Linux 5.19. Below it every move between directories is EXDEV.
inline constexpr Rights kTruncate = 1U << 14;  // ABI 3, Linux 6.2. Below it truncate(2) is free.
inline constexpr Rights kIoctlDev = 1U << 15;  // ABI 5, Linux 6.10. Below it ioctl(2) on devices is free.

inline constexpr Rights kBindTcp = 1U << 0;     // ABI 4, Linux 6.7
inline constexpr Rights kConnectTcp = 1U << 1;  // ABI 4

inline constexpr Rights kScopeAbstractUnix = 1U << 0;  // ABI 6, Linux 6.12
inline constexpr Rights kScopeSignal = 1U << 1;        // ABI 6

// Every right that `abi` knows. Handle these, or a right that is not handled stays free.
Rights fs_all(int abi) noexcept;
Rights net_all(int abi) noexcept;
Rights scope_all(int abi) noexcept;

// What to give to a directory that may be read and run from.
inline constexpr Rights kReadExec = kExecute | kReadFile | kReadDir;
Rights fs_read_exec(int abi) noexcept;
// ... and to one that may be written: all but device nodes and device ioctls.
Rights fs_read_write(int abi) noexcept;
// ... and to /dev: reading, writing and ioctl, nothing made or removed.
Rights fs_devices(int abi) noexcept;
// What of `rights` a rule on something that is no directory may name (the others are EINVAL there).
Rights fs_on_file(Rights rights) noexcept;

// landlock_ruleset_attr as of ABI 6.
struct HandledAccess {
  Rights fs = 0;
  Rights net = 0;
  Rights scoped = 0;
};

// A ruleset descriptor (close-on-exec), or -errno. Fields that are 0 are not sent, so older kernels accept what they know.
// -EINVAL: a right this kernel does not know; -E2BIG: a field it does not know; -ENOMSG: nothing handled at all.
int create_ruleset(const HandledAccess& handled) noexcept;
// Allows `rights` on what `path_fd` (O_PATH is enough) names and below. `rights` must be handled.
int add_path(int ruleset_fd, int path_fd, Rights rights) noexcept;
int add_port(int ruleset_fd, std::uint16_t port, Rights rights) noexcept;
// Binds the calling thread and its children for good. Needs no_new_privs.
int restrict_self(int ruleset_fd, unsigned flags = 0) noexcept;

}  // namespace landlock
}  // namespace belljar::kernel
