// The second, independent lock: Landlock over the finished tree. It is an allow list and cannot carve holes.
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "launch/child.h"
#include "launch/plan.h"

namespace belljar::launch {
namespace {

// As of ABI 6; Debian 12's header knows ABI 2. Remove when linux-libc-dev 6.12 is the oldest.
struct RulesetAttr {
  std::uint64_t handled_fs, handled_net, scoped;
};
struct NetPortAttr {
  std::uint64_t allowed, port;
};
constexpr int kRuleNetPort = 2;
constexpr std::uint64_t kBindTcp = 1, kConnectTcp = 2;
// Rights that make sense on something that is no directory.
constexpr std::uint64_t kFileRights = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE |
                                      (1ULL << 14) /* truncate */ | (1ULL << 15) /* ioctl_dev */;

int add_path(int ruleset, const LandlockRule& rule, std::uint64_t handled) noexcept {
  const int place = ::open(rule.path.c_str(), O_PATH | O_CLOEXEC);
  if (place < 0) return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? 0 : -errno;
  landlock_path_beneath_attr attr{};
  attr.allowed_access = rule.access & handled;
  attr.parent_fd = place;
  long status = ::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &attr, 0);
  if (status < 0 && errno == EINVAL) {
    attr.allowed_access &= kFileRights;
    status = ::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &attr, 0);
  }
  const int error = errno;
  ::close(place);
  return status < 0 ? -error : 0;
}

int add_ports(int ruleset, const std::vector<std::uint16_t>& ports, std::uint64_t access) noexcept {
  for (const std::uint16_t port : ports) {
    const NetPortAttr attr{access, port};
    if (::syscall(SYS_landlock_add_rule, ruleset, kRuleNetPort, &attr, 0) < 0) return -errno;
  }
  return 0;
}

}  // namespace

int restrict_paths(ChildContext& context) noexcept {
  const LandlockSpec& spec = context.plan->landlock;
  if (!spec.enabled) return 0;
  const RulesetAttr attr{spec.handled_fs, spec.handled_net, spec.scoped};
  // An older kernel refuses a longer struct only when the part it does not know is set: pass what is used.
  const std::size_t size = spec.scoped != 0 ? 24 : spec.handled_net != 0 ? 16 : 8;
  const long ruleset = ::syscall(SYS_landlock_create_ruleset, &attr, size, 0);
  if (ruleset < 0) return -errno;
  const int fd = static_cast<int>(ruleset);
  for (const LandlockRule& rule : spec.rules) {
    if (const int status = add_path(fd, rule, spec.handled_fs); status < 0) return status;
  }
  if (const int status = add_ports(fd, spec.bind_ports, kBindTcp); status < 0) return status;
  if (const int status = add_ports(fd, spec.connect_ports, kConnectTcp); status < 0) return status;
  if (::syscall(SYS_landlock_restrict_self, fd, 0) < 0) return -errno;
  ::close(fd);
  return 0;
}

}  // namespace belljar::launch
