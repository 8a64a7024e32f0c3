// Which cgroup hierarchies this process can see, and where in them it sits. Pure text work: the two files come in as text, so tests
// (and a fake tree in a temporary directory) need no kernel. Nothing here says that a controller *works*; that is found by trying,
// in cgroup.cc.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace belljar::kernel {

enum class Controller : std::uint8_t { kMemory, kPids, kCpu, kCpuacct, kFreezer };
inline constexpr std::size_t kControllers = 5;
std::string_view to_string(Controller controller) noexcept;

// A small set of controllers.
struct ControllerSet {
  std::uint8_t bits = 0;
  constexpr bool has(Controller c) const noexcept { return (bits >> static_cast<unsigned>(c)) & 1U; }
  constexpr void add(Controller c) noexcept { bits = static_cast<std::uint8_t>(bits | (1U << static_cast<unsigned>(c))); }
  constexpr bool empty() const noexcept { return bits == 0; }
  bool operator==(const ControllerSet&) const = default;
};
// Names from `text` (split at `separator`) that we know; others are left out.
ControllerSet parse_controllers(std::string_view text, char separator) noexcept;

// One mounted hierarchy as this process sees it.
struct Hierarchy {
  int version = 0;            // 1 or 2
  ControllerSet controllers;  // v1: what the mount carries. v2: empty here, cgroup.controllers tells
  std::string mount_point;    // "/sys/fs/cgroup/memory"
  std::string own;            // directory of the caller's own group: mount_point plus its path in the hierarchy
  bool operator==(const Hierarchy&) const = default;
};

struct CgroupHost {
  std::vector<Hierarchy> v1;
  std::optional<Hierarchy> v2;
  // mkdir(2), or what a test's fake tree does instead to give a new group its files.
  int (*make_directory)(const char* path) = nullptr;
  // The v1 hierarchy that carries `controller`, or nullptr.
  const Hierarchy* find_v1(Controller controller) const noexcept;
};

// `mountinfo`: text of /proc/self/mountinfo, proc_pid_mountinfo(5). `membership`: text of /proc/self/cgroup, cgroups(7). A
// hierarchy whose own group lies outside what is mounted (a container without a cgroup namespace) is left out: nothing could be
// created under it.
CgroupHost parse_cgroup_host(std::string_view mountinfo, std::string_view membership);

// Reads both files of this process.
CgroupHost read_cgroup_host();

}  // namespace belljar::kernel
