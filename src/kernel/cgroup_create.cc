// Making a sandbox's groups (reading, killing and removing them: cgroup.cc).
//
// A machine may have v2 alone, v1 alone, or both at once with the controllers distributed (the "hybrid"
// layout). So each controller is sought where it is mounted: what a v1 hierarchy carries is made there, one
// directory for each hierarchy, and all the rest shares one v2 directory, which is also the best place to
// kill from (cgroup.kill, Linux 5.14). Without one, killing needs the v1 freezer.
//
// v1 lets us create a group below our own and write to it if we own it. v2 has two more rules, from
// cgroup-v2.rst:
//   - A controller acts in a group only if the parent hands it down (cgroup.subtree_control), and a group
//     that does so may hold no processes itself ("no internal processes"). When we are alone in our group we
//     step into a leaf of our own first (step_into_leaf), and back out when the last group beside it is gone
//     (leave_leaf).
//   - Threaded controllers (cpu, pids) can be handed down from a group with processes, but then the child is
//     of type "threaded" and joining it fails with EOPNOTSUPP. The write succeeds; only cgroup.type tells
//     (serves_threads_only).
//
// If our own group cannot serve, groups above it are tried, nearest first, as far as we may write there.
// Leaving a group upwards would leave its limits, too: so never out of one that limits memory or cpu
// (has_limits), and a pids.max on the way, which systemd sets on every scope, is carried over to the new
// group.
//
// Nothing is derived from versions: directories are made, settings written, and what the kernel refused is
// noted in the outcome with its reason. Directories whose settings were all refused are removed again, for
// each costs the start a join.
#include <dirent.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "kernel/cgroup.h"
#include "kernel/cgroup_host.h"
#include "kernel/cgroup_name.h"
#include "kernel/small_file.h"

namespace belljar::kernel {
namespace {

constexpr std::uint64_t kPeriod = 100'000;  // microseconds, the kernel's default for CFS bandwidth

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

ControllerSet read_controllers(const std::string& directory, const char* file) {
  const auto text = read_small_file(AT_FDCWD, directory + "/" + file);
  return text ? parse_controllers(*text, ' ') : ControllerSet{};
}

// True when this process is the only one in `directory`.
bool only_us(const std::string& directory) {
  const auto text = read_small_file(AT_FDCWD, directory + "/cgroup.procs");
  return text && *text == format("{}\n", ::getpid());
}

// The leaf this process is in, if it stepped into one. create() and leave_leaf() hold the mutex: taking the controllers away from
// a group that is just being made would take its limits away.
struct OwnLeaf {
  int pid = 0;  // whose leaf it is: a forked child is in it too, but has not made it
  std::string own, leaf;
};
OwnLeaf& own_leaf() {
  static OwnLeaf value;
  return value;
}
std::mutex& leaf_mutex() {
  static std::mutex value;
  return value;
}

// A group with controllers for its children holds no processes itself (cgroups(7), "no internal processes"). When nobody but us is
// in our group, as under `systemd-run --scope -p Delegate=yes`, we move into a leaf of our own.
bool step_into_leaf(const std::string& own) {
  if (!only_us(own)) return false;
  const std::string leaf = own + "/" + cgroup_name("self");
  if (::mkdir(leaf.c_str(), 0755) != 0 && errno != EEXIST) return false;
  if (write_small_file(AT_FDCWD, (leaf + "/cgroup.procs").c_str(), "0") != 0) {
    ::rmdir(leaf.c_str());
    return false;
  }
  own_leaf() = {::getpid(), own, leaf};
  return true;
}

bool holds_other_groups(const std::string& directory, const std::string& leaf) {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir{::opendir(directory.c_str()), ::closedir};
  if (!dir) return true;
  while (const dirent* entry = ::readdir(dir.get()))
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.' && directory + "/" + entry->d_name != leaf) return true;
  return false;
}

// Our own group, or the one above when we are in our leaf.
std::string own_group(const Hierarchy& hierarchy) {
  const std::size_t slash = hierarchy.own.rfind('/');
  const std::string_view name = std::string_view(hierarchy.own).substr(slash + 1);
  return is_own_leaf(name) ? hierarchy.own.substr(0, slash) : hierarchy.own;
}

// With processes in `directory`, the kernel does hand a threaded controller (cpu, pids) to the groups below, but makes those places
// for threads of the same processes: joining one fails with EOPNOTSUPP (cgroup-v2.rst, "Threads").
bool serves_threads_only(const std::string& directory) {
  const auto type = read_small_file(AT_FDCWD, directory + "/cgroup.type");  // the root has none, and no such rule
  return type && !type->starts_with("domain\n");
}

// Enables `controller` for the children of `directory`. 0 or an errno.
int enable(const std::string& directory, Controller controller, const std::string& own) {
  if (read_controllers(directory, "cgroup.subtree_control").has(controller)) return serves_threads_only(directory) ? EBUSY : 0;
  const std::string file = directory + "/cgroup.subtree_control";
  const std::string name(to_string(controller));
  int error = write_small_file(AT_FDCWD, file.c_str(), "+" + name);
  if (error == 0 && serves_threads_only(directory)) {
    write_small_file(AT_FDCWD, file.c_str(), "-" + name);
    error = EBUSY;
  }
  if (error == EBUSY && directory == own && step_into_leaf(own)) return write_small_file(AT_FDCWD, file.c_str(), "+" + name);
  return error;
}

// A group that we would leave upwards may carry a limit that holds us; then a sibling of it would be an escape, so we do not.
bool has_limits(const std::string& directory) {
  for (const char* file : {"memory.max", "memory.high", "cpu.max"}) {
    const auto text = read_small_file(AT_FDCWD, directory + "/" + file);
    if (text && !text->starts_with("max")) return true;
  }
  return false;
}

// systemd gives every scope a pids.max (DefaultTasksMax), so that one is taken along instead.
std::optional<std::uint64_t> pids_limit(const std::string& directory) {
  const auto text = read_small_file(AT_FDCWD, directory + "/pids.max");
  return text ? parse_number(*text) : std::nullopt;
}

struct ParentChoice {
  std::string directory;
  ControllerSet usable;
  std::string missing;                    // why the others are not usable
  std::optional<std::uint64_t> pids_cap;  // of a group that was left upwards
};

constexpr std::string_view kDelegate = "start belljar with `systemd-run --user --scope -p Delegate=yes` to have one that is";

std::string explain(const std::string& directory, Controller controller, int error) {
  if (error == EBUSY)
    return format("cgroup {} holds other processes, so it cannot hand the {} controller to a group below", directory,
                  to_string(controller));
  return format("cannot enable the {} controller in {}: {}", to_string(controller), directory, std::strerror(error));
}

// Which of `needed` a new group in `directory` would have.
ParentChoice try_parent(const std::string& directory, ControllerSet needed, const std::string& own) {
  ParentChoice choice{.directory = directory};
  if (::faccessat(AT_FDCWD, directory.c_str(), W_OK, AT_EACCESS) != 0) {
    choice.directory.clear();
    choice.missing = format("cgroup {} is not delegated to us ({}); {}", directory, std::strerror(errno), kDelegate);
    return choice;
  }
  const ControllerSet available = read_controllers(directory, "cgroup.controllers");
  for (std::size_t i = 0; i < kControllers; ++i) {
    const auto controller = static_cast<Controller>(i);
    if (!needed.has(controller)) continue;
    if (!available.has(controller)) {
      choice.missing = format("cgroup {} has no {} controller", directory, to_string(controller));
      continue;
    }
    const int error = enable(directory, controller, own);
    if (error == 0) choice.usable.add(controller);
    else choice.missing = explain(directory, controller, error);
  }
  return choice;
}

// The place for a v2 group: our own group, else the nearest one above that we may use without leaving a limit behind.
ParentChoice choose_v2_parent(const Hierarchy& hierarchy, ControllerSet needed) {
  const std::string own = own_group(hierarchy);
  ParentChoice best = try_parent(own, needed, own);
  std::optional<std::uint64_t> cap;
  for (std::string at = own; best.usable != needed && at.size() > hierarchy.mount_point.size() && !has_limits(at);) {
    if (const auto limit = pids_limit(at)) cap = std::min(*limit, cap.value_or(*limit));
    if (cap) needed.add(Controller::kPids);
    at = parent_of(at);
    ParentChoice choice = try_parent(at, needed, own);
    if (choice.directory.empty() || (cap && !choice.usable.has(Controller::kPids))) continue;
    choice.pids_cap = cap;
    if (choice.usable == needed || best.directory.empty()) best = std::move(choice);
  }
  return best;
}

}  // namespace

bool CgroupRequest::wants(CgroupSetting setting) const noexcept {
  switch (setting) {
    case CgroupSetting::kMemory:
      return memory.has_value();
    case CgroupSetting::kMemoryLow:
      return memory_low.has_value();
    case CgroupSetting::kPids:
      return pids.has_value();
    case CgroupSetting::kCpu:
      return cpus.has_value();
    case CgroupSetting::kCpuWeight:
      return cpu_weight.has_value();
    case CgroupSetting::kKill:
      return kill;
  }
  return false;
}

bool CgroupRequest::wants_any() const noexcept {
  for (std::size_t i = 0; i < kCgroupSettings; ++i)
    if (wants(static_cast<CgroupSetting>(i))) return true;
  return false;
}

// Builds one Cgroup. Its methods run in the order of create().
class CgroupMaker {
 public:
  CgroupMaker(const CgroupRequest& request, const CgroupHost& host) : request_(request), host_(host), name_(cgroup_name()) {}

  Cgroup make() {
    make_v2();
    for (std::size_t i = 0; i < kControllers; ++i)
      if (needed_.has(static_cast<Controller>(i))) make_v1(static_cast<Controller>(i));
    apply_memory();
    apply_pids();
    apply_cpu();
    apply_kill();
    drop_unused();
    return std::move(group_);
  }

 private:
  CgroupOutcome& outcome(CgroupSetting setting) { return group_.outcomes_[static_cast<std::size_t>(setting)]; }

  const Cgroup::Directory* find_or_explain(Controller controller, CgroupSetting setting) {
    const Cgroup::Directory* found = group_.find(controller);
    if (found == nullptr)
      outcome(setting).missing =
          missing_.empty() ? format("no cgroup hierarchy has the {} controller", to_string(controller)) : missing_;
    return found;
  }

  void collect_needed() {
    if (request_.memory || request_.memory_low) needed_.add(Controller::kMemory);
    if (request_.pids) needed_.add(Controller::kPids);
    if (request_.cpus || request_.cpu_weight) needed_.add(Controller::kCpu);
  }

  bool make_directory(const std::string& parent, int version, ControllerSet controllers) {
    const std::string path = parent + "/" + name_;
    const int made = host_.make_directory != nullptr ? host_.make_directory(path.c_str()) : ::mkdir(path.c_str(), 0755);
    if (made != 0) {
      missing_ = format("cannot create a group in {}: {}", parent, std::strerror(errno));
      return false;
    }
    group_.directories_.push_back({version, controllers, path, UniqueFd{::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)}});
    sweep_orphans(parent);
    return true;
  }

  // The controllers that no v1 hierarchy carries, in one directory; also the best place to kill by, controllers or not.
  void make_v2() {
    collect_needed();
    ControllerSet wanted;
    for (std::size_t i = 0; i < kControllers; ++i) {
      const auto controller = static_cast<Controller>(i);
      if (needed_.has(controller) && host_.find_v1(controller) == nullptr) wanted.add(controller);
    }
    if (!host_.v2) return;
    if (wanted.empty() && !request_.kill) return;
    const ParentChoice choice = choose_v2_parent(*host_.v2, wanted);
    missing_ = choice.missing;
    if (choice.directory.empty() || (choice.usable.empty() && !request_.kill)) return;
    pids_cap_ = choice.pids_cap;
    make_directory(choice.directory, 2, choice.usable);
  }

  void make_v1(Controller controller) {
    const Hierarchy* hierarchy = host_.find_v1(controller);
    if (hierarchy == nullptr || group_.find(controller) != nullptr) return;
    make_directory(hierarchy->own, 1, hierarchy->controllers);
  }

  // Writes `text` and records what came of it.
  bool set(const Cgroup::Directory& at, CgroupSetting setting, const char* file, const std::string& text) {
    const int error = write_small_file(at.dir.get(), file, text);
    CgroupOutcome& result = outcome(setting);
    result.held = error == 0;
    if (error == 0) result.mechanism = format("cgroup v{} {}", at.version, file);
    else result.missing = format("cannot write {} to {}/{}: {}", text, at.path, file, std::strerror(error));
    return result.held;
  }

  void apply_memory() {
    if (request_.memory)
      if (const auto* at = find_or_explain(Controller::kMemory, CgroupSetting::kMemory)) {
        const std::string text = format("{}", request_.memory->count);
        if (set(*at, CgroupSetting::kMemory, at->version == 2 ? "memory.max" : "memory.limit_in_bytes", text)) {
          forbid_swap(*at, text);
          watch_memory(*at);
        }
      }
    if (request_.memory_low)
      if (const auto* at = find_or_explain(Controller::kMemory, CgroupSetting::kMemoryLow))
        set(*at, CgroupSetting::kMemoryLow, at->version == 2 ? "memory.low" : "memory.soft_limit_in_bytes",
            format("{}", request_.memory_low->count));
  }

  // Without this the limit moves pages to swap instead of ending anything. v1 counts memory plus swap.
  void forbid_swap(const Cgroup::Directory& at, const std::string& limit) {
    const int error = at.version == 2 ? write_small_file(at.dir.get(), "memory.swap.max", "0")
                                      : write_small_file(at.dir.get(), "memory.memsw.limit_in_bytes", limit);
    struct sysinfo info{};
    if (error != 0 && ::sysinfo(&info) == 0 && info.totalswap > 0)
      outcome(CgroupSetting::kMemory).missing = format("swap is not counted by this kernel ({})", std::strerror(error));
  }

  void watch_memory(const Cgroup::Directory& at) {
    if (at.version == 2) {
      if (request_.oom_group) write_small_file(at.dir.get(), "memory.oom.group", "1");
      group_.memory_events_ = UniqueFd{::openat(at.dir.get(), "memory.events", O_RDONLY | O_CLOEXEC)};
      return;
    }
    // cgroup-v1/memory.rst section 10: "<event_fd> <fd of memory.oom_control>". Where it is refused, finish() still reads the
    // counter.
    UniqueFd event{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    UniqueFd control{::openat(at.dir.get(), "memory.oom_control", O_RDONLY | O_CLOEXEC)};
    if (!event.valid() || !control.valid()) return;
    if (write_small_file(at.dir.get(), "cgroup.event_control", format("{} {}", event.get(), control.get())) != 0) return;
    group_.oom_eventfd_ = std::move(event);
    group_.oom_control_ = std::move(control);
  }

  void apply_pids() {
    if (!request_.pids && !pids_cap_) return;
    const std::uint64_t most = std::min(request_.pids.value_or(UINT64_MAX), pids_cap_.value_or(UINT64_MAX));
    if (const auto* at = find_or_explain(Controller::kPids, CgroupSetting::kPids))
      set(*at, CgroupSetting::kPids, "pids.max", format("{}", most));
  }

  void apply_cpu() {
    if (request_.cpus)
      if (const auto* at = find_or_explain(Controller::kCpu, CgroupSetting::kCpu)) {
        // The kernel refuses quotas below 1 ms.
        const auto quota =
            std::max<std::uint64_t>(1000, static_cast<std::uint64_t>(std::llround(*request_.cpus * static_cast<double>(kPeriod))));
        if (at->version == 2) set(*at, CgroupSetting::kCpu, "cpu.max", format("{} {}", quota, kPeriod));
        else if (write_small_file(at->dir.get(), "cpu.cfs_period_us", format("{}", kPeriod)), true)
          set(*at, CgroupSetting::kCpu, "cpu.cfs_quota_us", format("{}", quota));
      }
    if (request_.cpu_weight)
      if (const auto* at = find_or_explain(Controller::kCpu, CgroupSetting::kCpuWeight)) {
        // One processor is what every group has by default: weight 100, or 1024 shares.
        const auto scaled = [&](double unit, double least, double most) {
          return static_cast<std::uint64_t>(std::llround(std::clamp(*request_.cpu_weight * unit, least, most)));
        };
        if (at->version == 2) set(*at, CgroupSetting::kCpuWeight, "cpu.weight", format("{}", scaled(100, 1, 10000)));
        else set(*at, CgroupSetting::kCpuWeight, "cpu.shares", format("{}", scaled(1024, 2, 262144)));
      }
  }

  void apply_kill() {
    if (!request_.kill) return;
    if (group_.kill_directory() == nullptr) make_v1(Controller::kFreezer);
    CgroupOutcome& result = outcome(CgroupSetting::kKill);
    const Cgroup::Directory* at = group_.kill_directory();
    result.held = at != nullptr;
    if (at != nullptr) result.mechanism = at->version == 2 ? "cgroup v2 cgroup.kill" : "cgroup v1 freezer";
    else result.missing = missing_.empty() ? "neither cgroup v2 nor the freezer is mounted" : missing_;
  }

  // A directory whose settings were all refused would only cost the start a join.
  void drop_unused() {
    const auto used = [&](const Cgroup::Directory& at) {
      if (outcome(CgroupSetting::kKill).held && &at == group_.kill_directory()) return true;
      const auto held = [&](Controller controller, CgroupSetting a, CgroupSetting b) {
        return at.controllers.has(controller) && (outcome(a).held || outcome(b).held);
      };
      return held(Controller::kMemory, CgroupSetting::kMemory, CgroupSetting::kMemoryLow) ||
             held(Controller::kPids, CgroupSetting::kPids, CgroupSetting::kPids) ||
             held(Controller::kCpu, CgroupSetting::kCpu, CgroupSetting::kCpuWeight);
    };
    std::vector<Cgroup::Directory> kept;
    std::vector<bool> keep;
    for (const Cgroup::Directory& at : group_.directories_) keep.push_back(used(at));  // judged before anything moves
    for (std::size_t i = 0; i < keep.size(); ++i) {
      if (keep[i]) kept.push_back(std::move(group_.directories_[i]));
      else ::rmdir(group_.directories_[i].path.c_str());
    }
    group_.directories_ = std::move(kept);
  }

  const CgroupRequest& request_;
  const CgroupHost& host_;
  std::string name_;
  ControllerSet needed_;
  std::optional<std::uint64_t> pids_cap_;
  std::string missing_;
  Cgroup group_;
};

Cgroup Cgroup::create(const CgroupRequest& request, const CgroupHost& host) {
  if (!request.wants_any()) return {};
  Cgroup group;
  {
    const std::lock_guard lock{leaf_mutex()};
    group = CgroupMaker(request, host).make();
  }
  if (group.empty()) leave_leaf();
  return group;
}

void leave_leaf() noexcept {
  const std::lock_guard lock{leaf_mutex()};
  const OwnLeaf& here = own_leaf();
  if (here.pid != ::getpid() || holds_other_groups(here.own, here.leaf)) return;
  for (std::size_t i = 0; i < kControllers; ++i) {
    const auto controller = static_cast<Controller>(i);
    if (read_controllers(here.own, "cgroup.subtree_control").has(controller))
      write_small_file(AT_FDCWD, (here.own + "/cgroup.subtree_control").c_str(), format("-{}", to_string(controller)));
  }
  if (write_small_file(AT_FDCWD, (here.own + "/cgroup.procs").c_str(), "0") != 0) return;
  ::rmdir(here.leaf.c_str());
  own_leaf() = {};
}

}  // namespace belljar::kernel
