// What the kernel says of a process that a command would inherit from it: a spare serves only who is in this what it is itself.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace belljar::warm {

struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileId&) const = default;
};

// A value. Compared as a whole: ids, groups, capabilities, umask, ignored signals, filters of seccomp, processors (proc_pid_status(5)),
// limits, priorities, control groups, labels, all namespaces, root and working directory, and the program.
struct Caller {
  // nullopt: it is gone, or not ours to look at.
  static std::optional<Caller> look_at(pid_t pid);
  bool operator==(const Caller&) const = default;

  std::string status, groups, label, oom;
  std::array<std::array<rlim_t, 2>, RLIM_NLIMITS> limits{};
  std::uint64_t ignored = 0;
  int nice = 0, policy = 0, priority = 0, io = 0;
  std::array<FileId, 12> files{};  // namespaces, program, root, working directory
};

}  // namespace belljar::warm
