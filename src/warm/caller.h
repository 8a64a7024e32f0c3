// What the kernel says of a process that a command would inherit from it: a spare serves only who is in this what it is itself.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "warm/wire.h"

namespace belljar::warm {

struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  std::uint64_t mount = 0;  // of a path that leads through mounts, where the kernel tells
  bool operator==(const FileId&) const = default;
};

// A value. Compared as a whole: ids, groups, capabilities, umask, ignored signals, filters of seccomp, processors
// (proc_pid_status(5)), control groups, label, audit's session, all namespaces, root and working directory, and the program.
struct Caller {
  // nullopt: it is gone, or not ours to look at.
  static std::optional<Caller> look_at(pid_t pid);
  bool operator==(const Caller&) const = default;
  // In the same user, mount and pid namespaces, under as many filters.
  bool is_where(const Caller& other) const noexcept;

  std::string filters, status, groups, label, oom, dumps, session;
  std::uint64_t ignored = 0;
  std::array<FileId, 12> files{};  // namespaces, working directory, root, program
};

// The kernel tells how many filters of seccomp a process is under, and not which. They are only ever added, so who is under as many
// as pid 1 of the same namespace is under those of pid 1, as in a container; nobody knows of any others whether two processes share
// them. `status`, `of_init`: proc_pid_status(5).
bool are_known_filters(std::string_view status, std::string_view of_init);
// Of this process.
bool has_known_filters();

// Of this process.
wire::Inherited own_inherited();

}  // namespace belljar::warm
