// One sandbox's control group, in as many hierarchies as its limits need: cgroups(7), Documentation/admin-guide/cgroup-v2.rst and
// cgroup-v1/. What the machine can do is found by doing it: create() makes directories and writes the settings, and says for each
// setting whether the kernel took it. Names are `belljar.<pid>-<n>`, <pid> being ours, so that a later start can sweep up after a
// front process that was killed.
//
// Cost, measured on 6.18: mkdir 20-80 us a hierarchy, rmdir the same, CLONE_INTO_CGROUP nothing. Moving a process by file (all v1
// can do) waits for one RCU grace period, 5 to 25 ms, when nobody has moved one lately; so create nothing that no limit needs.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "belljar/units.h"
#include "kernel/cgroup_host.h"

namespace belljar::kernel {

enum class CgroupSetting : std::uint8_t { kMemory, kMemoryLow, kPids, kCpu, kCpuWeight, kKill };
inline constexpr std::size_t kCgroupSettings = 6;

// The limits that are asked of a group. Unset: not asked.
struct CgroupRequest {
  std::optional<Bytes> memory;      // memory.max and no swap; v1 memory.limit_in_bytes
  std::optional<Bytes> memory_low;  // memory.low; v1 memory.soft_limit_in_bytes
  std::optional<std::uint64_t> pids;
  std::optional<double> cpus;        // quota in processors
  std::optional<double> cpu_weight;  // in processors: 1.0 is the weight every other group has by default
  bool oom_group = false;            // v2: one process over the limit ends them all (memory.oom.group)
  bool kill = false;                 // a group is wanted to end the tree by, though no limit asks for one
  bool wants(CgroupSetting setting) const noexcept;
  bool wants_any() const noexcept;
};

// What became of one setting.
struct CgroupOutcome {
  bool held = false;
  std::string mechanism;  // "cgroup v2 memory.max"; empty when not held
  std::string missing;    // why it is not held, or what is missing although it is (swap)
};

// Counters of a group, as far as its hierarchies have them.
struct CgroupEvents {
  std::uint64_t oom_kills = 0;     // processes the kernel killed for memory
  std::uint64_t pids_refused = 0;  // forks refused
  bool under_oom = false;          // v1: somebody waits for memory right now
};
struct CgroupCpu {
  std::chrono::microseconds user{0}, system{0};
};

// A descriptor to poll for, and the events to ask for. A report may be late or spurious: it means "look now".
struct CgroupNotice {
  int fd = -1;
  short events = 0;
};

// The directories of one sandbox. Move-only; the destructor kills what is inside, waits for it (bounded) and removes them.
// An object without directories is valid and does nothing. One thread at a time.
class Cgroup {
 public:
  Cgroup() = default;
  Cgroup(Cgroup&& other) noexcept;
  Cgroup& operator=(Cgroup&& other) noexcept;
  ~Cgroup();

  // Makes what `request` needs under the caller's own group. Never fails as a whole: read outcome(). When at least one directory
  // was made, directories left behind by belljar processes that are gone are removed beside it.
  static Cgroup create(const CgroupRequest& request, const CgroupHost& host);

  const CgroupOutcome& outcome(CgroupSetting setting) const noexcept { return outcomes_[static_cast<std::size_t>(setting)]; }
  bool empty() const noexcept { return directories_.empty(); }

  // v2 directory for CLONE_INTO_CGROUP; -1 when there is none.
  int directory_fd() const noexcept;
  // v1: files that take the pid of the first process ("…/cgroup.procs"). Its descendants follow.
  std::vector<std::string> join_files() const;
  // v2 too: for a process that was not started by clone3.
  std::vector<std::string> all_join_files() const;
  std::vector<std::string> directories() const;

  CgroupEvents events() const;
  std::vector<CgroupNotice> notices() const;
  // Clears a notice after poll(2) reported it; call events() next. True when v1 told of an oom, whose counter may follow a moment
  // later.
  bool acknowledge() noexcept;
  std::optional<Bytes> memory_peak() const;
  std::optional<CgroupCpu> cpu() const;
  // Ids in our pid namespace of the processes inside.
  std::vector<int> processes() const;

  // SIGKILL to all inside, forks of the moment included; waits until they are gone or `deadline` has passed. True when none is
  // left.
  bool kill_all(std::chrono::milliseconds deadline) noexcept;

 private:
  // One group in one hierarchy.
  struct Directory {
    int version = 0;
    ControllerSet controllers;  // that act in this directory
    std::string path;
    UniqueFd dir;
  };
  friend class CgroupMaker;
  const Directory* find(Controller controller) const noexcept;
  const Directory* kill_directory() const noexcept;
  void remove() noexcept;

  std::vector<Directory> directories_;
  std::array<CgroupOutcome, kCgroupSettings> outcomes_;
  UniqueFd memory_events_;  // v2 memory.events, poll(2) POLLPRI
  UniqueFd oom_eventfd_;    // v1
  UniqueFd oom_control_;    // v1: kept open, the registration lives as long as it
};

// Thaws the v1 freezer groups that hold `pid` and not us: in one that somebody froze SIGKILL waits for that (a v2 group lets it
// through). What else is in such a group goes on, too. True when there was one that we may write to.
bool thaw_process(int pid) noexcept;

// Removes groups `belljar.<pid>-*` in `parent` whose process is gone, with what still runs in them. Returns how many were removed.
int sweep_orphans(const std::string& parent) noexcept;

}  // namespace belljar::kernel
