#include "kernel/cgroup_host.h"

#include <fcntl.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "kernel/small_file.h"

namespace belljar::kernel {
namespace {

constexpr std::string_view kNames[kControllers] = {"memory", "pids", "cpu", "cpuacct", "freezer"};

struct MountLine {
  std::string root, mount_point;
  std::string_view type, super_options;
};

// "36 35 98:0 /root /mount/point rw,noatime shared:1 - type source super,options"
std::optional<MountLine> parse_mount_line(std::string_view line) {
  MountLine mount;
  for (int skipped = 0; skipped < 3; ++skipped) next_field(line, ' ');
  mount.root = unescape_octal(next_field(line, ' '));
  mount.mount_point = unescape_octal(next_field(line, ' '));
  while (!line.empty() && next_field(line, ' ') != "-") {
  }
  mount.type = next_field(line, ' ');
  next_field(line, ' ');
  mount.super_options = next_field(line, ' ');
  if (mount.type != "cgroup" && mount.type != "cgroup2") return std::nullopt;
  return mount;
}

// Path of the caller's group in the hierarchy that carries `controllers` (v2: the line "0::path").
std::optional<std::string_view> find_membership(std::string_view membership, int version, ControllerSet controllers) {
  while (!membership.empty()) {
    std::string_view line = next_field(membership, '\n');
    const std::string_view id = next_field(line, ':');
    const std::string_view names = next_field(line, ':');
    if (version == 2 ? id == "0" && names.empty() : !controllers.empty() && parse_controllers(names, ',') == controllers)
      return line;
  }
  return std::nullopt;
}

// mount_point + (path without the mount's root); nullopt when `path` is not below `root`.
std::optional<std::string> locate(const MountLine& mount, std::string_view path) {
  if (path.starts_with("/..")) return std::nullopt;  // outside our cgroup namespace, cgroup_namespaces(7)
  if (mount.root != "/") {
    if (!path.starts_with(mount.root)) return std::nullopt;
    path.remove_prefix(mount.root.size());
    if (!path.empty() && path.front() != '/') return std::nullopt;
  }
  while (path.ends_with('/')) path.remove_suffix(1);
  return mount.mount_point + std::string(path);
}

}  // namespace

std::string_view to_string(Controller controller) noexcept { return kNames[static_cast<std::size_t>(controller)]; }

ControllerSet parse_controllers(std::string_view text, char separator) noexcept {
  ControllerSet set;
  while (!text.empty()) {
    std::string_view name = next_field(text, separator);
    while (name.ends_with('\n')) name.remove_suffix(1);
    for (std::size_t i = 0; i < kControllers; ++i)
      if (name == kNames[i]) set.add(static_cast<Controller>(i));
  }
  return set;
}

const Hierarchy* CgroupHost::find_v1(Controller controller) const noexcept {
  const auto found = std::find_if(v1.begin(), v1.end(), [&](const Hierarchy& h) { return h.controllers.has(controller); });
  return found == v1.end() ? nullptr : &*found;
}

CgroupHost parse_cgroup_host(std::string_view mountinfo, std::string_view membership) {
  CgroupHost host;
  while (!mountinfo.empty()) {
    const auto mount = parse_mount_line(next_field(mountinfo, '\n'));
    if (!mount) continue;
    Hierarchy hierarchy{.version = mount->type == "cgroup2" ? 2 : 1, .mount_point = mount->mount_point};
    if (hierarchy.version == 1) {
      hierarchy.controllers = parse_controllers(mount->super_options, ',');
      if (hierarchy.controllers.empty()) continue;  // name=systemd, devices, ...
    }
    const auto path = find_membership(membership, hierarchy.version, hierarchy.controllers);
    const auto own = path ? locate(*mount, *path) : std::nullopt;
    if (!own) continue;
    hierarchy.own = *own;
    // The same hierarchy may be mounted twice; the first place serves.
    if (hierarchy.version == 2 && !host.v2) host.v2 = std::move(hierarchy);
    else if (hierarchy.version == 1 && std::none_of(host.v1.begin(), host.v1.end(),
                                                    [&](const Hierarchy& h) { return h.controllers == hierarchy.controllers; }))
      host.v1.push_back(std::move(hierarchy));
  }
  return host;
}

CgroupHost read_cgroup_host() {
  const auto mountinfo = read_small_file(AT_FDCWD, "/proc/self/mountinfo");
  const auto membership = read_small_file(AT_FDCWD, "/proc/self/cgroup");
  if (!mountinfo || !membership) return {};
  return parse_cgroup_host(*mountinfo, *membership);
}

}  // namespace belljar::kernel
