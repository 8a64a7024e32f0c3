// A sandbox's limits: which mechanism of this machine holds each of them, how far, and which of them was hit.
//
//   LimitSet limits = BELLJAR_TRY(LimitSet::create(policy.limits, context));
//   append limits.clauses() to the report, check_required(report, policy)
//   plan.rlimits = limits.rlimits(); plan.cgroup_fd = limits.cgroup_fd(); plan.join_files = limits.join_files();
//   start; limits.attach(sandbox.init_pid());
//   while it runs: poll also limits.notices(), at most until limits.next_sample(); then limits.sample(now)
//   at the end: limits.finish(wait_status, usage)
//
// Time limits and captured output belong to the supervise loop, not here. One thread. docs/design/limits.md has the table of
// choices.
#pragma once

#include <sys/resource.h>

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "kernel/cgroup.h"
#include "launch/plan.h"

namespace belljar::runtime {

using SteadyTime = std::chrono::steady_clock::time_point;

// The command's surroundings, as far as they decide how a limit can be held.
struct LimitContext {
  bool pid_namespace = true;
  bool user_namespace = true;      // a fresh one: RLIMIT_NPROC counts in it alone
  bool kernel_uid_0 = false;       // the command keeps uid 0 of the host: the kernel exempts it from RLIMIT_NPROC
  bool kill_by_cgroup = false;     // wanted where no pid namespace ends the tree (second tier)
  bool group_writable = false;     // nothing keeps the command from writing to its own group (danger-full-access, delegated v2)
  bool whole_tree_on_oom = false;  // cgroup v2: memory.oom.group. Off: the kernel ends the largest process, the others go on
  unsigned own_tasks = 1;          // of ours that are counted with the command's: init
  std::string workspace;           // on the host; its growth is what `disk` limits
  bool private_tmp = true;         // a tmpfs, which the backend makes no larger than tmp_limit()
  const kernel::CgroupHost* cgroups = nullptr;  // for tests; null: this process's own
};

// Values that no mechanism can hold, which would read as no limit at all. Errors: kInvalidArgument, naming the key.
Result<void> check_limits(const Limits& limits);

// The most that the private /tmp may hold so that `limits.disk` stands, and `limits.memory`, which a tmpfs takes from (only a group
// counts it there): asked before the backend plans that tmpfs.
Bytes tmp_limit(const Limits& limits, Bytes tmp_size) noexcept;

// A limit that was reached while the command runs.
struct Hit {
  Reason reason = Reason::kMemory;
  std::string limit;    // "memory", as in ExecResult::limits_hit
  std::string message;  // one sentence
  bool kill = false;    // our task: end the tree. False: the kernel has already refused or ended what went over
};

// The limits' verdict on a command that ended.
struct Finish {
  std::vector<std::string> limits_hit;
  std::optional<Reason> reason;  // set when a limit is why it ended
  std::string message;           // one sentence on the first limit hit; empty when none was
  Usage usage;
};

struct LimitState;

class LimitSet {
 public:
  // Makes the groups and takes the baselines that `limits` need, and nothing when it asks for nothing. A limit this machine cannot
  // hold is no error here: its clause reads `none`, and check_required() judges. Errors: kInvalidArgument for a value no kernel
  // takes; kNotFound or kPermissionDenied for a workspace whose growth cannot be measured.
  static Result<LimitSet> create(const Limits& limits, const LimitContext& context);

  LimitSet(LimitSet&&) noexcept;
  LimitSet& operator=(LimitSet&&) noexcept;
  ~LimitSet();  // ends what is left in the groups and removes them

  const EnforcementReport& clauses() const noexcept;  // "limits.memory", ...: one for each limit asked for
  const std::vector<launch::RlimitSpec>& rlimits() const noexcept;
  int cgroup_fd() const noexcept;  // for CLONE_INTO_CGROUP; -1: none
  const std::vector<std::string>& join_files() const noexcept;

  // The pid of init (or of the first process), as we see it. Before it, nothing below looks at processes.
  void attach(int init_pid) noexcept;
  // Descriptors to poll with the loop's own.
  std::span<const kernel::CgroupNotice> notices() const noexcept;
  // When sample() wants to be called; nullopt: never, until a notice comes.
  std::optional<SteadyTime> next_sample() const noexcept;
  // Looks at what is due. Each limit is reported once. Takes a few milliseconds at most.
  std::optional<Hit> sample(SteadyTime now);
  // Processor time of the tree, for idle detection and reports.
  std::chrono::microseconds tree_cpu() const;

  // `wait_status` as of waitpid(2). Counters of the group are per sandbox: `limits_hit` of a session's later command names only
  // what happened since the last finish().
  Finish finish(int wait_status, const rusage& usage);

 private:
  explicit LimitSet(std::unique_ptr<LimitState> state) noexcept;
  std::unique_ptr<LimitState> state_;
};

}  // namespace belljar::runtime
