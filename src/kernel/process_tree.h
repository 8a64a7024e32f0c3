// A process and all its descendants, read from procfs: which they are, what they use. For machines without cgroups, where this is
// how memory, tasks and processor time of a sandbox are known at all. A snapshot of a moving thing: a process may start or end
// while it is read. Cost: about 15 us a process.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "belljar/units.h"

namespace belljar::kernel {

struct ProcessStat {
  int parent = 0;
  std::uint64_t cpu_ticks = 0;  // own and of children that were waited for
  std::uint64_t threads = 0;
  char state = 0;                   // 'Z': it has ended, and nobody has waited for it
  std::uint64_t started_ticks = 0;  // since boot; with the pid it names a process for good
};
// Text of /proc/PID/stat, proc_pid_stat(5). The name in it may hold spaces and parentheses.
std::optional<ProcessStat> parse_process_stat(std::string_view text) noexcept;
std::optional<ProcessStat> read_process_stat(int pid);

// `root` (a pid as we see it) and its descendants; empty when it is gone. By /proc/PID/task/TID/children, else (a kernel without
// CONFIG_PROC_CHILDREN) by one pass over all of /proc. Complete below the init of a pid namespace or below a subreaper, since
// orphans become its children.
std::vector<int> list_tree(int root);

struct TreeUsage {
  std::uint64_t tasks = 0;           // processes and threads
  std::chrono::microseconds cpu{0};  // since the start, ended and reaped descendants included
  Bytes memory;                      // see measure_tree
};

// With `memory`: resident pages of each process without the shared ones, plus the largest shared part once; when that is above
// `exact_above`, the proportional set sizes of smaps_rollup instead, where we may read them. Never more than what is truly in use.
TreeUsage measure_tree(const std::vector<int>& pids, bool memory, Bytes exact_above = {});

}  // namespace belljar::kernel
