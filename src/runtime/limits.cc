// Choosing the mechanism of each limit. Watching them while the command runs: limits_watch.cc.
//
// Each limit takes the strictest mechanism that this machine gives: a control group, else an
// rlimit, else samples with a kill, else nothing, and its clause in the report says which and how
// far. A limit that nothing holds is no error here; check_required() (enforcement.cc) decides
// whether the run may go on.
//
// The group comes first because it counts the whole tree and the kernel enforces it at once. An
// rlimit bounds each process (RLIMIT_DATA) or the whole user (RLIMIT_NPROC), so for the memory and
// the processes of a tree it is partial, except RLIMIT_NPROC in a user namespace of the sandbox's
// own. Mechanisms that would not be the limit are left out: RLIMIT_AS also counts what runtimes
// reserve and never use, RLIMIT_CPU bounds seconds and no rate, and an affinity can be changed from
// inside.
//
// The sweeper is started right after the group is made, so that the group is removed even when this
// process is killed (launch/sweeper.h). Sources: getrlimit(2), setrlimit(2), cgroups(7) and the
// kernel's cgroup-v2.rst; docs/design/limits.md has the table.
#include "runtime/limits.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/units.h"
#include "kernel/cgroup.h"
#include "kernel/cgroup_host.h"
#include "kernel/disk_usage.h"
#include "launch/plan.h"
#include "launch/sweeper.h"
#include "runtime/limits_state.h"

namespace belljar::runtime {
namespace {

using kernel::CgroupRequest;
using kernel::CgroupSetting;
using kernel::Controller;

constexpr std::chrono::seconds kLongestBaseline{5};

// RLIMIT_NPROC counts in each user namespace by itself since Linux 5.14; before, it would count the user's processes on the whole
// host. There is nothing to ask the kernel for, so we ask for a call that came soon after: futex_waitv, 5.16, in every build.
// Remove when Linux 5.16 is the oldest kernel.
bool nproc_counts_per_namespace() {
  static const bool yes = [] { return ::syscall(SYS_futex_waitv, nullptr, 0, 0, nullptr, 0) != 0 && errno != ENOSYS; }();
  return yes;
}

// The value for `resource`, never above what the caller itself may have.
launch::RlimitSpec lower_to(int resource, rlim_t asked) {
  rlimit current{RLIM_INFINITY, RLIM_INFINITY};
  ::getrlimit(static_cast<__rlimit_resource>(resource), &current);
  const rlim_t value = std::min(asked, current.rlim_max);
  return {resource, {value, value}};
}

Error bad_value(std::string_view key, const std::string& value, std::string reason) {
  return Error(Code::kInvalidArgument, format("limits.{} = {} cannot be enforced", key, value)).reason(std::move(reason));
}

}  // namespace

Result<void> check_limits(const Limits& limits) {
  // A static init and one command need about a megabyte of page tables, stacks and kernel memory.
  if (limits.memory && *limits.memory < Bytes{1U << 20})
    return bad_value("memory", to_string(*limits.memory), "no program starts in less than 1MiB")
        .next("give at least 1MiB, or leave it out");
  if (limits.pids && *limits.pids < 1)
    return bad_value("pids", "0", "the command itself is one process").next("give at least 1, or leave it out");
  for (const auto& [key, value] : {std::pair{"cpus", limits.cpus}, std::pair{"cpu_request", limits.cpu_request}})
    if (value && (!std::isfinite(*value) || *value < 0.01 || *value > 100'000))
      return bad_value(key, format("{}", *value),
                       *value > 100'000 ? "no machine has so many processors" : "the kernel's smallest quota is 0.01 processors")
          .next("give a number such as 0.5 or 2");
  // Descriptors of a start are moved above 9, so that a command finds 0 to 9 free.
  if (limits.open_files && *limits.open_files < 20)
    return bad_value("open_files", format("{}", *limits.open_files), "starting a program takes up to 20").next("give at least 20");
  return {};
}

namespace {

// Fills a LimitState: one method a limit, and each adds its clause.
class Chooser {
 public:
  explicit Chooser(LimitState& state) : state_(state), limits_(state.limits), context_(state.context) {}

  Result<void> choose() {
    make_group();
    core();
    memory();
    pids();
    cpus();
    requests();
    files();
    return disk();
  }

 private:
  bool nproc_holds() const { return context_.user_namespace && !context_.kernel_uid_0 && nproc_counts_per_namespace(); }

  CgroupRequest request() const {
    CgroupRequest wanted{.memory = limits_.memory,
                         .memory_low = limits_.memory_request,
                         .cpus = limits_.cpus,
                         .cpu_weight = limits_.cpu_request,
                         .oom_group = context_.whole_tree_on_oom,
                         .kill = context_.kill_by_cgroup};
    // Beside RLIMIT_NPROC, which is as strict, for its counter: without it a hit that no sample sees has no name. On v1 that costs
    // a start up to 20 ms (kernel/cgroup.h).
    if (limits_.pids) wanted.pids = *limits_.pids + context_.own_tasks;
    return wanted;
  }

  void make_group() {
    if (!backend::wants_group(limits_) && !context_.kill_by_cgroup) return;
    const kernel::CgroupHost host = context_.cgroups != nullptr ? *context_.cgroups : kernel::read_cgroup_host();
    state_.group = kernel::Cgroup::create(request(), host);
    state_.sweeper = launch::Sweeper::start(state_.group.directories());
    state_.group_memory = state_.group.outcome(CgroupSetting::kMemory).held;
    state_.group_pids = limits_.pids && state_.group.outcome(CgroupSetting::kPids).held;
    state_.join_files = state_.group.join_files();
    state_.notices = state_.group.notices();
  }

  void add(std::string_view key, std::string asked, std::string mechanism, Enforced enforced, std::string detail = {}) {
    state_.clauses.push_back({format("limits.{}", key), std::move(asked), std::move(mechanism), enforced, std::move(detail)});
  }

  // The clause of a setting that a group holds. False when none does.
  bool add_group(std::string_view key, const std::string& asked, CgroupSetting setting, std::string_view weakness = {}) {
    const kernel::CgroupOutcome& outcome = state_.group.outcome(setting);
    if (!outcome.held) return false;
    std::string detail = outcome.missing;
    const auto append = [&](std::string_view text) {
      detail += detail.empty() || text.empty() ? std::string(text) : format("; {}", text);
    };
    append(weakness);
    if (context_.group_writable) append("the command could change its own group: nothing hides cgroupfs from it");
    const Enforced enforced = detail.empty() ? Enforced::kFull : Enforced::kPartial;
    add(key, asked, outcome.mechanism, enforced, std::move(detail));
    return true;
  }

  std::string why_no_group(CgroupSetting setting) const {
    const std::string& missing = state_.group.outcome(setting).missing;
    return missing.empty() ? "no cgroup" : missing;
  }

  TreeWatch& tree() {
    if (!state_.tree) state_.tree.emplace();
    return *state_.tree;
  }

  // No core files in the workspace. 1 and not 0: a core_pattern that starts with `|` ignores 0 and hands the image to a program on
  // the host, and takes 1 to mean "no" (fs/coredump.c); a file would need at least a page.
  void core() { state_.rlimits.push_back(lower_to(RLIMIT_CORE, 1)); }

  void memory() {
    if (!limits_.memory) return;
    const std::string asked = to_string(*limits_.memory);
    if (add_group("memory", asked, CgroupSetting::kMemory)) return;
    // RLIMIT_DATA counts private writable mappings since Linux 4.7, getrlimit(2). RLIMIT_AS would also count what node, Java, Go
    // and sanitizers reserve without using, and they would not start.
    // A quarter above the limit: the sampler comes first where it can, since only it (and ru_maxrss, at the end) can name the
    // limit.
    state_.rlimits.push_back(lower_to(RLIMIT_DATA, limits_.memory->count + limits_.memory->count / 4));
    tree().memory = limits_.memory;
    add("memory", asked, "RLIMIT_DATA for each process, sampled sum over all with kill", Enforced::kPartial,
        format("several processes together can exceed it between two samples; {}", why_no_group(CgroupSetting::kMemory)));
  }

  void pids() {
    if (!limits_.pids) return;
    const std::string asked = format("{}", *limits_.pids);
    if (add_group("pids", asked, CgroupSetting::kPids)) return;
    tree().tasks = limits_.pids;
    if (nproc_holds()) {
      state_.rlimits.push_back(lower_to(RLIMIT_NPROC, *limits_.pids + context_.own_tasks));
      add("pids", asked, "RLIMIT_NPROC in the sandbox's user namespace, sampled to name a hit", Enforced::kFull);
      return;
    }
    tree().kill_on_tasks = true;
    const std::string_view why =
        context_.kernel_uid_0 ? "the kernel does not count uid 0" : "without a user namespace RLIMIT_NPROC counts the whole host";
    add("pids", asked, "sampled count of processes and threads with kill", Enforced::kPartial,
        format("a burst can exceed it between two samples; {}; {}", why, why_no_group(CgroupSetting::kPids)));
  }

  void cpus() {
    if (!limits_.cpus) return;
    const std::string asked = format("{}", *limits_.cpus);
    if (add_group("cpus", asked, CgroupSetting::kCpu)) return;
    // RLIMIT_CPU bounds seconds, not a rate, and sched_setaffinity(2) can be undone from inside: neither would be this limit.
    add("cpus", asked, "", Enforced::kNone, format("only a cgroup limits the rate; {}", why_no_group(CgroupSetting::kCpu)));
  }

  // Requests are never more than partial: a weight counts among the groups beside it, and protection ends where the groups above
  // have none.
  void requests() {
    constexpr std::string_view kWeight = "a weight among the groups beside it, not a reservation";
    constexpr std::string_view kLow = "protected only as far as the groups above are";
    if (limits_.cpu_request) {
      const std::string asked = format("{}", *limits_.cpu_request);
      if (!add_group("cpu_request", asked, CgroupSetting::kCpuWeight, kWeight))
        add("cpu_request", asked, "", Enforced::kNone, why_no_group(CgroupSetting::kCpuWeight));
    }
    if (limits_.memory_request) {
      const std::string asked = to_string(*limits_.memory_request);
      if (!add_group("memory_request", asked, CgroupSetting::kMemoryLow, kLow))
        add("memory_request", asked, "", Enforced::kNone, why_no_group(CgroupSetting::kMemoryLow));
    }
  }

  void files() {
    // A command that keeps the host's CAP_SYS_RESOURCE may raise its own hard limits, setrlimit(2).
    const Enforced enforced = context_.kernel_uid_0 ? Enforced::kPartial : Enforced::kFull;
    const std::string detail = context_.kernel_uid_0 ? "the command keeps uid 0 and may raise it again" : "";
    if (limits_.open_files) {
      state_.rlimits.push_back(lower_to(RLIMIT_NOFILE, *limits_.open_files));
      add("open_files", format("{}", *limits_.open_files), "RLIMIT_NOFILE for each process", enforced, detail);
    }
    if (limits_.file_size) {
      state_.rlimits.push_back(lower_to(RLIMIT_FSIZE, limits_.file_size->count));
      add("file_size", to_string(*limits_.file_size), "RLIMIT_FSIZE for each file", enforced, detail);
    }
  }

  Result<void> disk() {
    if (!limits_.disk) return {};
    DiskWatch watch{.limit = *limits_.disk, .tmp = context_.private_tmp};
    watch.workspace = UniqueFd{::open(context_.workspace.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (!watch.workspace.valid())
      return Error(errno == EACCES ? Code::kPermissionDenied : Code::kNotFound,
                   format("cannot measure the workspace {}", quoted(context_.workspace)))
          .sys(errno, "open")
          .next("make it readable, or leave limits.disk out");
    watch.file_system_start = BELLJAR_TRY(kernel::file_system_used(watch.workspace.get()));
    kernel::DiskScan scan{watch.workspace.get()};
    watch.measurable = scan.advance(kLongestBaseline);
    watch.baseline = scan.result().used;
    watch.unseen_start = scan.result().unseen;
    watch.due = watch.scan_due = std::chrono::steady_clock::now();
    bound_files(watch, scan.result().largest);
    std::string detail =
        "many files can exceed it by what is written between two looks, 1 ms apart near the limit (some MiB); no project quota";
    if (!watch.measurable) detail = "the workspace is too large to measure: growth of its whole file system is taken instead";
    add("disk", to_string(*limits_.disk),
        context_.private_tmp ? "RLIMIT_FSIZE for each file; sampled growth of the workspace with kill; size of the private /tmp"
                             : "RLIMIT_FSIZE for each file; sampled growth of the workspace with kill",
        Enforced::kPartial, std::move(detail));
    state_.disk = std::move(watch);
    return {};
  }

  // At once, whatever samples see: no file gets larger than the limit. One that is larger already may grow by as much.
  void bound_files(DiskWatch& watch, Bytes largest) {
    const Bytes most = largest > watch.limit ? Bytes{largest.count + watch.limit.count} : watch.limit;
    if (limits_.file_size && *limits_.file_size <= most) return;
    std::erase_if(state_.rlimits, [](const launch::RlimitSpec& one) { return one.resource == RLIMIT_FSIZE; });
    state_.rlimits.push_back(lower_to(RLIMIT_FSIZE, most.count));
    watch.largest_file = most;
  }

  LimitState& state_;
  const Limits& limits_;
  const LimitContext& context_;
};

}  // namespace

Bytes tmp_limit(const Limits& limits, Bytes tmp_size) noexcept {
  return std::min({tmp_size, limits.disk.value_or(tmp_size), limits.memory.value_or(tmp_size)});
}

Result<LimitSet> LimitSet::create(const Limits& limits, const LimitContext& context) {
  BELLJAR_CHECK(check_limits(limits));
  auto state = std::make_unique<LimitState>();
  state->limits = limits;
  state->context = context;
  BELLJAR_CHECK(Chooser(*state).choose());
  return LimitSet(std::move(state));
}

LimitSet::LimitSet(std::unique_ptr<LimitState> state) noexcept : state_(std::move(state)) {}
LimitSet::LimitSet(LimitSet&&) noexcept = default;
LimitSet& LimitSet::operator=(LimitSet&&) noexcept = default;
LimitSet::~LimitSet() = default;

const EnforcementReport& LimitSet::clauses() const noexcept { return state_->clauses; }
const std::vector<launch::RlimitSpec>& LimitSet::rlimits() const noexcept { return state_->rlimits; }
int LimitSet::cgroup_fd() const noexcept { return state_->group.directory_fd(); }
const std::vector<std::string>& LimitSet::join_files() const noexcept { return state_->join_files; }
std::span<const kernel::CgroupNotice> LimitSet::notices() const noexcept { return state_->notices; }

}  // namespace belljar::runtime
