#include "kernel/landlock.h"

#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace belljar::kernel {
namespace {

int result(long value) noexcept { return value < 0 ? -errno : static_cast<int>(value); }

// LANDLOCK_RULE_NET_PORT and its struct. Remove when the oldest header is Linux 6.7's (ABI 4).
constexpr int kRuleNetPort = 2;
struct PortRule {
  std::uint64_t rights;
  std::uint64_t port;
};

}  // namespace

int landlock_abi() noexcept {
  const long abi = syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return abi < 0 ? 0 : static_cast<int>(abi);
}

namespace landlock {

Rights fs_all(int abi) noexcept {
  if (abi < 1) return 0;
  Rights rights = kRefer - 1;  // the thirteen of ABI 1
  if (abi >= 2) rights |= kRefer;
  if (abi >= 3) rights |= kTruncate;
  if (abi >= 5) rights |= kIoctlDev;
  return rights;
}

Rights net_all(int abi) noexcept { return abi >= 4 ? kBindTcp | kConnectTcp : 0; }

Rights scope_all(int abi) noexcept { return abi >= 6 ? kScopeAbstractUnix | kScopeSignal : 0; }

Rights fs_read_exec(int abi) noexcept { return kReadExec & fs_all(abi); }

Rights fs_read_write(int abi) noexcept { return fs_all(abi) & ~(kMakeChar | kMakeBlock | kIoctlDev); }

Rights fs_devices(int abi) noexcept { return (kReadFile | kReadDir | kWriteFile | kTruncate | kIoctlDev) & fs_all(abi); }

Rights fs_on_file(Rights rights) noexcept { return rights & (kExecute | kWriteFile | kReadFile | kTruncate | kIoctlDev); }

int create_ruleset(const HandledAccess& handled) noexcept {
  const std::size_t size = handled.scoped != 0 ? 24 : handled.net != 0 ? 16 : 8;
  static_assert(sizeof handled == 24 && offsetof(HandledAccess, net) == 8 && offsetof(HandledAccess, scoped) == 16);
  return result(syscall(SYS_landlock_create_ruleset, &handled, size, 0));
}

int add_path(int ruleset_fd, int path_fd, Rights rights) noexcept {
  landlock_path_beneath_attr attr{};
  attr.allowed_access = rights;
  attr.parent_fd = path_fd;
  return result(syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &attr, 0));
}

int add_port(int ruleset_fd, std::uint16_t port, Rights rights) noexcept {
  const PortRule rule{rights, port};
  return result(syscall(SYS_landlock_add_rule, ruleset_fd, kRuleNetPort, &rule, 0));
}

int restrict_self(int ruleset_fd, unsigned flags) noexcept {
  return result(syscall(SYS_landlock_restrict_self, ruleset_fd, flags));
}

}  // namespace landlock
}  // namespace belljar::kernel
