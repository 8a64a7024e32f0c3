// Watching limits while the command runs, and naming those it hit. Choosing their mechanisms:
// limits.cc.
//
// Three watchers, from the cheapest to the dearest, and sample() asks them in this order. The
// group's counters are kept by the kernel and cost a read. The tree is read from /proc. The
// workspace is measured by a walk, which may take long, and so goes in slices of kDiskSlice.
//
// The walk is avoided as long as possible. One statfs(2) tells how much the whole file system grew;
// while that is less than the limit, the workspace cannot have grown by more, whoever wrote. The
// time to the next look is what the fastest writer needs for the rest of the limit. Only when the
// limit may have been passed, or when kScanInterval has gone by (others may have freed what the
// command took), the walk begins. What it finds to be the growth of others raises the base, so that
// the same growth causes no second walk.
//
// A watcher costs at most about a tenth of a processor: it rests kRest times as long as it worked.
// For the tree this is measured in processor time of the thread, because on a busy machine a look
// takes long without costing much.
//
// On cgroup v1 the notice of an oom may come before the counter of kills grows, so the counter is
// read again every kOomRecheck for a while (kernel/cgroup.h). What no sample saw is looked for once
// more at the end (note_at_end): counters, the largest process by ru_maxrss, the signal SIGXFSZ, a
// last walk.
//
// A hit names why the command ended only when we ended it or when it died of the signal that the
// kernel sends for that limit. A command that met a limit and went on has it in limits_hit alone.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "base/processor_time.h"
#include "base/unique_fd.h"
#include "belljar/exec_result.h"
#include "belljar/units.h"
#include "kernel/cgroup.h"
#include "kernel/disk_usage.h"
#include "kernel/process_tree.h"
#include "runtime/limits.h"
#include "runtime/limits_state.h"

namespace belljar::runtime {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

// Each watcher takes at most about a tenth of one processor: it rests ten times as long as its last look took.
constexpr int kRest = 10;
constexpr milliseconds kMemoryInterval{20};
constexpr milliseconds kTasksInterval{100};
// Between two looks at the file system, a statfs(2): as long as the fastest writer needs for what is left, 4 GiB/s.
constexpr milliseconds kDiskInterval{100};
constexpr milliseconds kLeastDiskInterval{1};
constexpr milliseconds kTmpInterval{50};
constexpr std::uint64_t kFastestPerMs = (4ULL << 30) / 1000;
constexpr milliseconds kDiskSlice{2};        // of a scan, then kRest times that long nothing
constexpr milliseconds kScanInterval{5000};  // even when the file system did not grow: others may have freed what we took
constexpr milliseconds kLastScan{500};       // at the end; a workspace that takes longer is judged by samples alone
constexpr milliseconds kOomRecheck{10};
constexpr std::uint32_t kTmpfsMagic = 0x01021994;  // statfs(2)

// Processor time of this thread: on a busy machine a look takes long without costing much, and a longer rest would miss more.
microseconds thread_cpu() { return std::chrono::duration_cast<microseconds>(processor_time()); }

microseconds since(SteadyTime begin) { return std::chrono::duration_cast<microseconds>(SteadyClock::now() - begin); }

Bytes growth(Bytes now, Bytes before) { return {now.count > before.count ? now.count - before.count : 0}; }

std::string plural(std::uint64_t count, std::string_view one, std::string_view many) {
  return format("{} {}", count, count == 1 ? one : many);
}

// "128+n" is how a shell passes on that its child died of signal n.
bool died_of(int wait_status, int signal) {
  return (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == signal) ||
         (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 128 + signal);
}

microseconds to_microseconds(const timeval& time) { return std::chrono::seconds(time.tv_sec) + microseconds(time.tv_usec); }

// Bytes in use on `path` when it is a tmpfs on none of the devices `seen`; its own joins them.
Bytes tmpfs_used(const std::string& path, std::vector<dev_t>& seen) {
  struct statfs info{};
  struct stat status{};
  const UniqueFd fd{::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (!fd.valid() || ::fstatfs(fd.get(), &info) != 0 || ::fstat(fd.get(), &status) != 0) return {};
  if (static_cast<std::uint32_t>(info.f_type) != kTmpfsMagic) return {};
  if (std::find(seen.begin(), seen.end(), status.st_dev) != seen.end()) return {};
  seen.push_back(status.st_dev);
  return {(info.f_blocks - info.f_bfree) * static_cast<std::uint64_t>(info.f_bsize)};
}

}  // namespace

std::optional<Hit> LimitState::report(Hit hit) {
  const bool known = std::any_of(hits.begin(), hits.end(), [&](const Hit& h) { return h.limit == hit.limit; });
  if (known) return std::nullopt;
  hits.push_back(hit);
  return hit;
}

std::optional<Hit> LimitState::sample_group(SteadyTime now) {
  if (!group_memory && !group_pids) return std::nullopt;
  const bool told = group.acknowledge();
  const bool recheck = oom_recheck && now >= *oom_recheck;
  if (!told && !recheck && notices.empty()) return std::nullopt;
  const kernel::CgroupEvents events = group.events();
  const std::uint64_t killed = events.oom_kills - std::min(events.oom_kills, events_before.oom_kills);
  if (group_memory && killed > 0) {
    oom_recheck.reset();
    return report({Reason::kMemory, "memory",
                   format("the kernel ended {} because the sandbox needed more than its {} of memory (limits.memory)",
                          plural(killed, "process", "processes"), to_string(*limits.memory)),
                   context.whole_tree_on_oom});
  }
  if (told) oom_rechecks_left = 20;
  if (oom_rechecks_left > 0 && (told || recheck))
    oom_recheck = --oom_rechecks_left > 0 ? std::optional(now + kOomRecheck) : std::nullopt;
  return std::nullopt;
}

std::optional<Hit> LimitState::sample_tree(SteadyTime now) {
  if (!tree || init_pid < 0 || now < tree->due) return std::nullopt;
  const microseconds begin = thread_cpu();
  const kernel::TreeUsage usage =
      kernel::measure_tree(kernel::list_tree(init_pid), tree->memory.has_value(), tree->memory.value_or(Bytes{}));
  const milliseconds least = tree->memory || tree->kill_on_tasks ? kMemoryInterval : kTasksInterval;
  tree->due = now + std::max<microseconds>(least, (thread_cpu() - begin) * kRest);
  tree->peak = std::max(tree->peak, usage.memory);
  if (tree->memory && usage.memory > *tree->memory)
    return report({Reason::kMemory, "memory",
                   format("the sandbox used {} of memory, more than its {} (limits.memory, sampled)", to_string(usage.memory),
                          to_string(*tree->memory)),
                   true});
  const std::uint64_t tasks = usage.tasks - std::min<std::uint64_t>(usage.tasks, context.own_tasks);
  if (tree->tasks && tasks > *tree->tasks && tree->kill_on_tasks)
    return report({Reason::kPids, "pids",
                   format("the sandbox ran {} processes and threads, more than its {} (limits.pids, sampled)", tasks, *tree->tasks),
                   true});
  if (tree->tasks && tasks >= *tree->tasks && !tree->kill_on_tasks)
    return report({Reason::kPids, "pids",
                   format("the sandbox reached its limit of {} processes and threads (limits.pids)", *tree->tasks), false});
  return std::nullopt;
}

// The private tmp, seen through the root of a process inside. Init is not dumpable, so an ordinary user may look only through the
// others.
Bytes LimitState::tmp_used() const {
  if (!disk->tmp || init_pid < 0) return {};
  // Until its tree stands, a process inside sees the host's own: what lies there is not what it wrote.
  std::vector<dev_t> others;
  struct stat other{};
  if (::fstat(disk->workspace.get(), &other) == 0) others.push_back(other.st_dev);
  for (const char* path : {"/tmp", "/dev/shm"}) {
    if (::stat(path, &other) == 0) others.push_back(other.st_dev);
  }
  std::vector<int> pids = kernel::list_tree(init_pid);
  pids.resize(std::min<std::size_t>(pids.size(), 4));
  for (const int pid : pids) {
    const std::string root = format("/proc/{}/root", pid);
    struct stat status{};
    if (::stat((root + "/.").c_str(), &status) != 0) continue;
    const Bytes tmp = tmpfs_used(root + "/tmp", others);
    return {tmp.count + tmpfs_used(root + "/dev/shm", others).count};
  }
  return {};
}

std::optional<Hit> LimitState::judge_disk(const kernel::DiskUsage& usage) {
  Bytes grown = growth(usage.used, disk->baseline);
  // Something was made unreadable to us since the start (mode 000, or too deep): then the whole file system is the only honest
  // bound.
  if (usage.unseen > disk->unseen_start || !disk->measurable)
    if (const auto used = kernel::file_system_used(disk->workspace.get()))
      grown = std::max(grown, growth(*used, disk->file_system_start));
  grown.count += tmp_used().count;
  if (grown < disk->limit) return std::nullopt;  // one file alone gets no larger than that
  return report(
      {Reason::kDisk, "disk",
       format("workspace and tmp grew by {} and reached {} (limits.disk, sampled)", to_string(grown), to_string(disk->limit)),
       true});
}

std::optional<Hit> LimitState::sample_disk(SteadyTime now) {
  if (!disk || now < disk->due) return std::nullopt;
  if (!disk->scan) {
    const auto used = kernel::file_system_used(disk->workspace.get());
    // A look into the sandbox costs more, and its tmpfs is not larger than the limit either.
    if (now >= disk->tmp_due) {
      disk->tmp_seen = tmp_used();
      disk->tmp_due = now + kTmpInterval;
    }
    const Bytes possible = used ? Bytes{growth(*used, disk->file_system_start).count + disk->tmp_seen.count} : disk->limit;
    const std::uint64_t left = disk->limit.count - std::min(possible.count, disk->limit.count);
    disk->due = now + std::clamp<milliseconds>(milliseconds(left / kFastestPerMs), kLeastDiskInterval, kDiskInterval);
    // There is nothing to look for: the file system grew by less than the limit, whoever did it.
    if (left > 0 && now < disk->scan_due) return std::nullopt;
    if (!disk->measurable) return judge_disk({});
    disk->used_at_scan = used ? *used : disk->file_system_start;
    disk->scan_is_due = left == 0;
    disk->scan.emplace(disk->workspace.get());
  }
  const auto begin = SteadyClock::now();
  const bool complete = disk->scan->advance(kDiskSlice);
  // Where the limit may be passed already there is no rest.
  const int rest = disk->scan_is_due ? 1 : kRest;
  disk->due = now + std::max<microseconds>(kLeastDiskInterval, since(begin) * rest);
  if (!complete) return std::nullopt;
  const kernel::DiskUsage usage = disk->scan->result();
  disk->scan_due = now + std::max<microseconds>(kScanInterval, disk->scan->cost() * kRest);
  disk->scan.reset();
  // What others wrote meanwhile is not looked for again.
  const Bytes ours = growth(usage.used, disk->baseline);
  if (usage.unseen <= disk->unseen_start && disk->used_at_scan.count > ours.count)
    disk->file_system_start = std::max(disk->file_system_start, Bytes{disk->used_at_scan.count - ours.count});
  return judge_disk(usage);
}

void LimitSet::attach(int init_pid) noexcept { state_->init_pid = init_pid; }

std::optional<SteadyTime> LimitSet::next_sample() const noexcept {
  std::optional<SteadyTime> next = state_->oom_recheck;
  const auto earlier = [&](SteadyTime due) { next = next ? std::min(*next, due) : due; };
  if (state_->tree && state_->init_pid >= 0) earlier(state_->tree->due);
  if (state_->disk) earlier(state_->disk->due);
  return next;
}

std::optional<Hit> LimitSet::sample(SteadyTime now) {
  if (auto hit = state_->sample_group(now)) return hit;
  if (auto hit = state_->sample_tree(now)) return hit;
  return state_->sample_disk(now);
}

microseconds LimitSet::tree_cpu() const {
  if (const auto cpu = state_->group.cpu()) return cpu->user + cpu->system;
  if (state_->init_pid < 0) return {};
  return kernel::measure_tree(kernel::list_tree(state_->init_pid), false).cpu;
}

// What only shows at the end: counters of the group, the signal, and growth that no sample saw.
void LimitState::note_at_end(int wait_status, Bytes largest) {
  if (group_memory || group_pids) {
    group.acknowledge();
    const kernel::CgroupEvents events = group.events();
    const std::uint64_t killed = events.oom_kills - std::min(events.oom_kills, events_before.oom_kills);
    const std::uint64_t refused = events.pids_refused - std::min(events.pids_refused, events_before.pids_refused);
    if (group_memory && killed > 0)
      report({Reason::kMemory, "memory",
              format("the kernel ended {} because the sandbox needed more than its {} of memory (limits.memory)",
                     plural(killed, "process", "processes"), to_string(*limits.memory))});
    if (group_pids && refused > 0)
      report({Reason::kPids, "pids",
              format("{} refused because the sandbox had reached its {} processes and threads (limits.pids)",
                     plural(refused, "fork was", "forks were"), *limits.pids)});
    events_before = events;
  }
  if (tree && tree->memory && largest > *tree->memory)
    report({Reason::kMemory, "memory",
            format("one process used {} of memory, more than the sandbox's {} (limits.memory)", to_string(largest),
                   to_string(*tree->memory))});
  if (disk && disk->largest_file && died_of(wait_status, SIGXFSZ))
    report({Reason::kDisk, "disk",
            format("the command was ended because it wrote a file beyond {} (limits.disk)", to_string(*disk->largest_file))});
  else if (limits.file_size && died_of(wait_status, SIGXFSZ))
    report({Reason::kDisk, "file_size",
            format("the command was ended because it wrote a file beyond {} (limits.file_size)", to_string(*limits.file_size))});
  if (!disk) return;
  // Whether the file system grew tells nothing: another may have freed meanwhile what the command took.
  kernel::DiskScan scan{disk->workspace.get()};
  if (!disk->measurable) judge_disk({});
  else if (scan.advance(kLastScan)) judge_disk(scan.result());
}

Finish LimitSet::finish(int wait_status, const rusage& usage) {
  LimitState& state = *state_;
  // ru_maxrss is that of the largest single process, in KiB, getrusage(2).
  const Bytes largest{static_cast<std::uint64_t>(std::max<long>(usage.ru_maxrss, 0)) * 1024};
  state.note_at_end(wait_status, largest);
  Finish finish;
  for (const Hit& hit : state.hits) {
    finish.limits_hit.push_back(hit.limit);
    if (finish.message.empty() || hit.kill) finish.message = hit.message;
    // The limit is *why* it ended when we ended it, or when it died of what the kernel sends for it.
    const bool cause = hit.kill || (hit.limit == "memory" && died_of(wait_status, SIGKILL)) || hit.limit == "file_size" ||
                       (hit.limit == "disk" && died_of(wait_status, SIGXFSZ));
    if (cause) finish.reason = hit.reason;
  }
  finish.usage.cpu_user = to_microseconds(usage.ru_utime);
  finish.usage.cpu_system = to_microseconds(usage.ru_stime);
  if (const auto cpu = state.group.cpu()) {
    finish.usage.cpu_user = cpu->user - state.cpu_before.user;
    finish.usage.cpu_system = cpu->system - state.cpu_before.system;
    state.cpu_before = *cpu;
  }
  const Bytes peak = state.tree ? std::max(largest, state.tree->peak) : largest;
  finish.usage.peak_memory = state.group.memory_peak().value_or(peak);
  state.hits.clear();
  return finish;
}

}  // namespace belljar::runtime
