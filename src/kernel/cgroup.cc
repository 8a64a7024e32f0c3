// Reading, killing and removing a sandbox's groups. Making them: cgroup_create.cc.
#include "kernel/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/unique_fd.h"
#include "belljar/units.h"
#include "kernel/cgroup_host.h"
#include "kernel/cgroup_name.h"
#include "kernel/small_file.h"

namespace belljar::kernel {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kRemoveDeadline{2000};

int pidfd_open(int pid) noexcept { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

// Ids in `directory`/cgroup.procs. 0 stands for a process outside our pid namespace and is left out.
void append_processes(int directory, std::vector<int>& pids) {
  const auto text = read_small_file(directory, "cgroup.procs");
  if (!text) return;
  for (std::string_view rest = *text; !rest.empty();) {
    const auto pid = parse_number(next_field(rest, '\n'));
    if (pid && *pid > 0) pids.push_back(static_cast<int>(*pid));
  }
}

std::vector<std::string> subdirectories(const std::string& path) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir{::opendir(path.c_str()), ::closedir};
  if (!dir) return names;
  while (const dirent* entry = ::readdir(dir.get()))
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  return names;
}

// What a command with access to cgroupfs made below goes too. Depth is bounded by cgroup.max.depth and by `depth`.
int remove_directory(const std::string& path, int depth = 0) {
  if (::rmdir(path.c_str()) == 0 || errno == ENOENT) return 0;
  const int error = errno;
  if (error != EBUSY && error != ENOTEMPTY) return error;
  if (depth < 16)
    for (const std::string& name : subdirectories(path)) remove_directory(path + "/" + name, depth + 1);
  return ::rmdir(path.c_str()) == 0 ? 0 : errno;
}

void append_tree(const std::string& path, std::vector<int>& pids, int depth = 0) {
  const UniqueFd dir{::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  append_processes(dir.get(), pids);
  if (depth < 16)
    for (const std::string& name : subdirectories(path)) append_tree(path + "/" + name, pids, depth + 1);
}

std::vector<int> tree_processes(const std::vector<std::string>& paths) {
  std::vector<int> pids;
  for (const std::string& path : paths) append_tree(path, pids);
  std::sort(pids.begin(), pids.end());
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
  return pids;
}

// SIGKILL to each of `paths`' processes; their pidfds come back, readable when they are dead. An id read from cgroup.procs may be
// free again by the time we use it, so it is pinned by a pidfd first and looked up once more.
std::vector<UniqueFd> kill_listed(const std::vector<std::string>& paths) {
  std::vector<UniqueFd> killed;
  std::vector<std::pair<int, UniqueFd>> pinned;
  for (const int pid : tree_processes(paths)) pinned.emplace_back(pid, UniqueFd{pidfd_open(pid)});
  if (pinned.empty()) return killed;
  const std::vector<int> still = tree_processes(paths);
  for (auto& [pid, fd] : pinned) {
    if (!fd.valid() || !std::binary_search(still.begin(), still.end(), pid)) continue;
    ::syscall(SYS_pidfd_send_signal, fd.get(), SIGKILL, nullptr, 0);
    killed.push_back(std::move(fd));
  }
  return killed;
}

void await(const std::vector<UniqueFd>& pidfds, Clock::time_point until) {
  for (const UniqueFd& fd : pidfds) {
    const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now()).count();
    pollfd wait{.fd = fd.get(), .events = POLLIN};
    if (left > 0) ::poll(&wait, 1, static_cast<int>(left));
  }
}

// Freezing stops forks of the moment: what is listed then is all there is. SIGKILL acts on frozen v1 tasks only once they are
// thawed.
void freeze(int directory, bool frozen) noexcept { write_small_file(directory, "freezer.state", frozen ? "FROZEN" : "THAWED"); }

}  // namespace

std::string cgroup_name(std::string_view tag) {
  static std::atomic<unsigned> next{0};
  if (!tag.empty()) return format("belljar.{}-{}.{}", ::getpid(), tag, own_pid_namespace());
  return format("belljar.{}-{}.{}", ::getpid(), next.fetch_add(1, std::memory_order_relaxed), own_pid_namespace());
}

bool is_own_leaf(std::string_view name) { return name == cgroup_name("self"); }

std::optional<CgroupOwner> parse_cgroup_name(std::string_view name) noexcept {
  constexpr std::string_view kPrefix = "belljar.";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  CgroupOwner owner;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), owner.pid);
  if (error != std::errc{} || owner.pid <= 0 || end == name.data() + name.size() || *end != '-') return std::nullopt;
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot + 1 == name.size()) return std::nullopt;
  owner.pid_namespace = name.substr(dot + 1);
  return owner;
}

const std::string& own_pid_namespace() {
  static const std::string inode = [] {
    struct stat status{};
    return ::stat("/proc/self/ns/pid", &status) == 0 ? format("{}", status.st_ino) : std::string("0");
  }();
  return inode;
}

Cgroup::Cgroup(Cgroup&& other) noexcept = default;

Cgroup& Cgroup::operator=(Cgroup&& other) noexcept {
  if (this == &other) return *this;
  remove();
  directories_ = std::exchange(other.directories_, {});
  outcomes_ = std::move(other.outcomes_);
  memory_events_ = std::move(other.memory_events_);
  oom_eventfd_ = std::move(other.oom_eventfd_);
  oom_control_ = std::move(other.oom_control_);
  return *this;
}

Cgroup::~Cgroup() { remove(); }

void Cgroup::remove() noexcept {
  if (directories_.empty()) return;
  const auto until = Clock::now() + kRemoveDeadline;
  for (const Directory& at : directories_) {
    int error = remove_directory(at.path);
    if (error == EBUSY) kill_all(std::chrono::duration_cast<milliseconds>(until - Clock::now()));
    // The last task leaves its group a moment after its pidfd turned readable; v1 has no event for that, so look again each
    // millisecond.
    while ((error = remove_directory(at.path)) == EBUSY && Clock::now() < until) ::poll(nullptr, 0, 1);
  }
  directories_.clear();
  leave_leaf();
}

const Cgroup::Directory* Cgroup::find(Controller controller) const noexcept {
  const auto found =
      std::find_if(directories_.begin(), directories_.end(), [&](const Directory& at) { return at.controllers.has(controller); });
  return found == directories_.end() ? nullptr : &*found;
}

// Where the tree can be ended in one step: a v2 directory with cgroup.kill (Linux 5.14), or the v1 freezer.
const Cgroup::Directory* Cgroup::kill_directory() const noexcept {
  for (const Directory& at : directories_)
    if (at.version == 2 && ::faccessat(at.dir.get(), "cgroup.kill", W_OK, AT_EACCESS) == 0) return &at;
  return find(Controller::kFreezer);
}

int Cgroup::directory_fd() const noexcept {
  for (const Directory& at : directories_)
    if (at.version == 2) return at.dir.get();
  return -1;
}

std::vector<std::string> Cgroup::join_files() const {
  std::vector<std::string> files;
  for (const Directory& at : directories_)
    if (at.version == 1) files.push_back(at.path + "/cgroup.procs");
  return files;
}

std::vector<std::string> Cgroup::all_join_files() const {
  std::vector<std::string> files;
  for (const Directory& at : directories_) files.push_back(at.path + "/cgroup.procs");
  return files;
}

std::vector<std::string> Cgroup::directories() const {
  std::vector<std::string> paths;
  for (const Directory& at : directories_) paths.push_back(at.path);
  return paths;
}

CgroupEvents Cgroup::events() const {
  CgroupEvents events;
  if (const Directory* at = find(Controller::kMemory)) {
    const auto text = read_small_file(at->dir.get(), at->version == 2 ? "memory.events" : "memory.oom_control");
    if (text) {
      events.oom_kills = find_key(*text, "oom_kill").value_or(0);
      events.under_oom = find_key(*text, "under_oom").value_or(0) != 0;
    }
  }
  if (const Directory* at = find(Controller::kPids))
    if (const auto text = read_small_file(at->dir.get(), "pids.events")) events.pids_refused = find_key(*text, "max").value_or(0);
  return events;
}

std::vector<CgroupNotice> Cgroup::notices() const {
  std::vector<CgroupNotice> notices;
  if (memory_events_.valid()) notices.push_back({memory_events_.get(), POLLPRI});
  if (oom_eventfd_.valid()) notices.push_back({oom_eventfd_.get(), POLLIN});
  return notices;
}

bool Cgroup::acknowledge() noexcept {
  char buffer[512];
  // kernfs reports POLLPRI until the file was read from its start through this descriptor.
  if (memory_events_.valid()) (void)!::pread(memory_events_.get(), buffer, sizeof buffer, 0);
  return oom_eventfd_.valid() && ::read(oom_eventfd_.get(), buffer, 8) == 8;
}

namespace {
std::optional<Bytes> read_bytes(int directory, const char* file) {
  const auto text = read_small_file(directory, file);
  const auto number = text ? parse_number(*text) : std::nullopt;
  if (!number) return std::nullopt;
  return Bytes{*number};
}
}  // namespace

std::optional<Bytes> Cgroup::memory_peak() const {
  const Directory* at = find(Controller::kMemory);
  return at == nullptr ? std::nullopt : read_bytes(at->dir.get(), at->version == 2 ? "memory.peak" : "memory.max_usage_in_bytes");
}

std::optional<CgroupCpu> Cgroup::cpu() const {
  using std::chrono::microseconds;
  for (const Directory& at : directories_) {
    // Every v2 group has cpu.stat, controller or not.
    if (at.version == 2) {
      const auto text = read_small_file(at.dir.get(), "cpu.stat");
      if (!text || !find_key(*text, "usage_usec")) continue;
      return CgroupCpu{microseconds(find_key(*text, "user_usec").value_or(0)),
                       microseconds(find_key(*text, "system_usec").value_or(0))};
    }
    if (!at.controllers.has(Controller::kCpuacct)) continue;
    const auto user = read_small_file(at.dir.get(), "cpuacct.usage_user");
    const auto system = read_small_file(at.dir.get(), "cpuacct.usage_sys");
    if (!user || !system) continue;
    return CgroupCpu{microseconds(parse_number(*user).value_or(0) / 1000), microseconds(parse_number(*system).value_or(0) / 1000)};
  }
  return std::nullopt;
}

std::vector<int> Cgroup::processes() const { return tree_processes(directories()); }

bool Cgroup::kill_all(milliseconds deadline) noexcept {
  const auto until = Clock::now() + deadline;
  const std::vector<std::string> paths = directories();
  const Directory* at = kill_directory();
  const Directory* pids = find(Controller::kPids);
  // From here on no fork succeeds, so the rounds below end.
  if (pids != nullptr) write_small_file(pids->dir.get(), "pids.max", "0");
  for (bool first = true; first || Clock::now() < until; first = false) {
    if (at != nullptr && at->version == 2) write_small_file(at->dir.get(), "cgroup.kill", "1");
    const bool freezer = at != nullptr && at->version == 1;
    if (freezer) freeze(at->dir.get(), true);
    const std::vector<UniqueFd> killed = kill_listed(paths);
    if (freezer) freeze(at->dir.get(), false);
    await(killed, until);
    if (tree_processes(paths).empty()) return true;
  }
  return false;
}

bool thaw_process(int pid) noexcept {
  const auto mounts = read_small_file(AT_FDCWD, "/proc/self/mountinfo");
  const auto groups = read_small_file(AT_FDCWD, format("/proc/{}/cgroup", pid));
  if (!mounts || !groups) return false;
  const CgroupHost theirs = parse_cgroup_host(*mounts, *groups), ours = read_cgroup_host();
  const Hierarchy* const there = theirs.find_v1(Controller::kFreezer);
  const Hierarchy* const here = ours.find_v1(Controller::kFreezer);
  if (there == nullptr || here == nullptr) return false;
  bool thawed = false;
  // A group above us is not frozen: we run.
  const auto holds_us = [&](const std::string& path) { return (here->own + "/").starts_with(path + "/"); };
  for (std::string path = there->own; path.size() > there->mount_point.size() && !holds_us(path); path.resize(path.rfind('/'))) {
    thawed = write_small_file(AT_FDCWD, (path + "/freezer.state").c_str(), "THAWED") == 0 || thawed;
  }
  return thawed;
}

int sweep_orphans(const std::string& parent) noexcept {
  int removed = 0;
  for (const std::string& name : subdirectories(parent)) {
    const auto owner = parse_cgroup_name(name);
    if (!owner || owner->pid_namespace != own_pid_namespace()) continue;
    if (::kill(owner->pid, 0) == 0 || errno != ESRCH) continue;
    const std::string path = parent + "/" + name;
    const auto until = Clock::now() + milliseconds(200);
    write_small_file(AT_FDCWD, (path + "/cgroup.kill").c_str(), "1");
    while (!tree_processes({path}).empty() && Clock::now() < until) await(kill_listed({path}), until);
    if (remove_directory(path) == 0) ++removed;
  }
  return removed;
}

}  // namespace belljar::kernel
