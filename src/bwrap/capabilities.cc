#include "bwrap/capabilities.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>

#include "base/ascii.h"

namespace belljar::bwrap {
namespace {

// By number, linux/capability.h.
constexpr std::string_view kNames[] = {"chown",
                                       "dac_override",
                                       "dac_read_search",
                                       "fowner",
                                       "fsetid",
                                       "kill",
                                       "setgid",
                                       "setuid",
                                       "setpcap",
                                       "linux_immutable",
                                       "net_bind_service",
                                       "net_broadcast",
                                       "net_admin",
                                       "net_raw",
                                       "ipc_lock",
                                       "ipc_owner",
                                       "sys_module",
                                       "sys_rawio",
                                       "sys_chroot",
                                       "sys_ptrace",
                                       "sys_pacct",
                                       "sys_admin",
                                       "sys_boot",
                                       "sys_nice",
                                       "sys_resource",
                                       "sys_time",
                                       "sys_tty_config",
                                       "mknod",
                                       "lease",
                                       "audit_write",
                                       "audit_control",
                                       "setfcap",
                                       "mac_override",
                                       "mac_admin",
                                       "syslog",
                                       "wake_alarm",
                                       "block_suspend",
                                       "audit_read",
                                       "perfmon",
                                       "bpf",
                                       "checkpoint_restore"};

}  // namespace

std::optional<int> find_capability(std::string_view name) noexcept {
  constexpr std::string_view kPrefix = "cap_";
  if (!iequals(name.substr(0, kPrefix.size()), kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  const auto* const found = std::ranges::find_if(kNames, [&](std::string_view known) { return iequals(name, known); });
  if (found == std::end(kNames)) return std::nullopt;
  return static_cast<int>(found - std::begin(kNames));
}

}  // namespace belljar::bwrap
