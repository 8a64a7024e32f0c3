// Names of our groups: `belljar.<pid>-<n>.<pid namespace>`. The pid is that of the process that owns the group; the namespace is
// part of the name because a cgroup tree may be shared by containers, where the same number means another process.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace belljar::kernel {

// A fresh name for this process; `tag` replaces the counter.
std::string cgroup_name(std::string_view tag = {});
// Is `name` this process's leaf, `cgroup_name("self")`?
bool is_own_leaf(std::string_view name);
// Back out of that leaf, which is removed, once no other group is beside it. A process cannot remove the group it is in.
void leave_leaf() noexcept;

struct CgroupOwner {
  int pid = 0;
  std::string_view pid_namespace;
};
std::optional<CgroupOwner> parse_cgroup_name(std::string_view name) noexcept;
// The inode number of our pid namespace, as in names.
const std::string& own_pid_namespace();

}  // namespace belljar::kernel
