// The state of a LimitSet. Shared by limits.cc (choosing) and limits_watch.cc (sampling and the end); nobody else includes it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "kernel/cgroup.h"
#include "kernel/disk_usage.h"
#include "launch/sweeper.h"
#include "runtime/limits.h"

namespace belljar::runtime {

// Growth of the workspace and of the private tmp.
struct DiskWatch {
  Bytes limit;
  UniqueFd workspace;
  std::optional<Bytes> largest_file;  // RLIMIT_FSIZE is for this limit
  Bytes baseline;                     // of the workspace
  Bytes file_system_start;            // bytes in use on its whole file system
  std::uint64_t unseen_start = 0;
  Bytes tmp_seen;  // of the private tmp, when it was looked at last
  SteadyTime tmp_due;
  Bytes used_at_scan;                    // of the file system, when `scan` began
  bool scan_is_due = false;              // the limit may have been passed
  bool measurable = true;                // the baseline was complete
  bool tmp = false;                      // there is a private tmp to add
  std::optional<kernel::DiskScan> scan;  // under way
  SteadyTime due;                        // next look at the file system, or next slice
  SteadyTime scan_due;                   // next full scan even if the file system did not grow
};

// Processes read from /proc, where no group counts for us.
struct TreeWatch {
  std::optional<Bytes> memory;         // over it: end the tree
  std::optional<std::uint64_t> tasks;  // of the command, ours not counted
  bool kill_on_tasks = false;          // false: RLIMIT_NPROC holds it, we only look so that it can be named
  SteadyTime due;
  Bytes peak;
};

struct LimitState {
  Limits limits;
  LimitContext context;
  kernel::Cgroup group;
  launch::Sweeper sweeper;  // ends before the group is removed: it may stand in the front's own leaf, which then goes too
  EnforcementReport clauses;
  std::vector<launch::RlimitSpec> rlimits;
  std::vector<std::string> join_files;
  std::vector<kernel::CgroupNotice> notices;
  int init_pid = -1;

  bool group_memory = false, group_pids = false;
  std::optional<SteadyTime> oom_recheck;
  int oom_rechecks_left = 0;
  std::optional<TreeWatch> tree;
  std::optional<DiskWatch> disk;

  // Since the last finish().
  kernel::CgroupEvents events_before;
  kernel::CgroupCpu cpu_before;
  std::vector<Hit> hits;

  // Records `hit` once a command; returns it the first time.
  std::optional<Hit> report(Hit hit);

  std::optional<Hit> sample_group(SteadyTime now);
  std::optional<Hit> sample_tree(SteadyTime now);
  std::optional<Hit> sample_disk(SteadyTime now);
  Bytes tmp_used() const;
  std::optional<Hit> judge_disk(const kernel::DiskUsage& usage);
  void note_at_end(int wait_status, Bytes largest);
};

}  // namespace belljar::runtime
