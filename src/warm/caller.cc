#include "warm/caller.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "base/format.h"
#include "base/unique_fd.h"
#include "kernel/small_file.h"

namespace belljar::warm {
namespace {

// The lines that are of the process's rights and not of its life.
std::string rights_of(std::string_view status) {
  constexpr std::string_view kLines[] = {"Umask",
                                         "Uid",
                                         "Gid",
                                         "Groups",
                                         "CapInh",
                                         "CapPrm",
                                         "CapEff",
                                         "CapBnd",
                                         "CapAmb",
                                         "NoNewPrivs",
                                         "Seccomp",
                                         "Seccomp_filters",
                                         "Speculation_Store_Bypass",
                                         "SpeculationIndirectBranch",
                                         "Cpus_allowed",
                                         "Mems_allowed"};
  std::string rights;
  while (!status.empty()) {
    const std::string_view line = status.substr(0, std::min(status.find('\n'), status.size() - 1) + 1);
    status.remove_prefix(line.size());
    if (std::ranges::find(kLines, line.substr(0, line.find(':'))) != std::end(kLines)) rights += line;
  }
  return rights;
}

// Ignored signals, without the two that are libc's own: which of them posix_spawn(3) leaves ignored says who started a process.
std::uint64_t ignored_signals(std::string_view status) {
  constexpr std::string_view kLine = "\nSigIgn:\t";
  const std::size_t at = status.find(kLine);
  if (at == std::string_view::npos) return ~std::uint64_t{0};
  std::uint64_t set = 0;
  std::from_chars(status.data() + at + kLine.size(), status.data() + status.size(), set, 16);
  constexpr std::uint64_t kOfLibc = std::uint64_t{3} << 31U;  // 32 and 33
  return set & ~kOfLibc;
}

// How many filters of seccomp, none of them, or nothing where the kernel does not count them (before Linux 5.9).
std::string filters_of(std::string_view status) {
  constexpr std::string_view kLine = "\nSeccomp_filters:\t";
  const std::size_t at = status.find(kLine);
  if (at == std::string_view::npos) return {};
  status.remove_prefix(at + kLine.size());
  return std::string(status.substr(0, status.find('\n')));
}

}  // namespace

bool are_known_filters(std::string_view status, std::string_view of_init) {
  if (status.find("\nSeccomp:\t0\n") != std::string_view::npos) return true;
  const std::string filters = filters_of(status);
  return !filters.empty() && filters == filters_of(of_init);
}

bool has_known_filters() {
  const auto status_of = [](const char* process) {
    const UniqueFd folder(::open(process, O_PATH | O_DIRECTORY | O_CLOEXEC));
    return folder.valid() ? kernel::read_small_file(folder.get(), "status").value_or("") : std::string();
  };
  return are_known_filters(status_of("/proc/self"), status_of("/proc/1"));
}

std::optional<Caller> Caller::look_at(pid_t pid) {
  const UniqueFd process(::open(format("/proc/{}", pid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!process.valid()) return std::nullopt;
  Caller caller;
  const auto text_of = [&](const char* name) { return kernel::read_small_file(process.get(), name).value_or(""); };
  const std::string status = text_of("status");
  if (status.empty()) return std::nullopt;
  caller.status = rights_of(status);
  caller.filters = filters_of(status);
  caller.ignored = ignored_signals(status);
  caller.groups = text_of("cgroup");
  caller.label = text_of("attr/current");  // none without a security module that has labels
  caller.oom = text_of("oom_score_adj");
  caller.dumps = text_of("coredump_filter");
  caller.session = text_of("sessionid");  // audit's, of the login
  constexpr const char* kFiles[] = {
      "ns/user", "ns/mnt", "ns/pid", "ns/net", "ns/ipc", "ns/uts", "ns/cgroup", "ns/time", "ns/pid_for_children",
      "cwd",     "root",   "exe"};
  for (std::size_t i = 0; i < std::size(kFiles); ++i) {
    struct statx file{};
    // A kernel without namespaces of that kind has no such name. The last is there as long as the process is, so that nothing above
    // was of another one with the same pid.
    if (::statx(process.get(), kFiles[i], 0, STATX_INO | STATX_MNT_ID, &file) != 0 &&
        (errno != ENOENT || i + 3 >= std::size(kFiles)))
      return std::nullopt;
    caller.files[i] = {::makedev(file.stx_dev_major, file.stx_dev_minor), file.stx_ino, file.stx_mnt_id};
  }
  return caller;
}

bool Caller::is_where(const Caller& other) const noexcept {
  constexpr std::size_t kNamespaces = 3;  // of user, mounts and pids: the first of `files`
  return filters == other.filters && std::equal(files.begin(), files.begin() + kNamespaces, other.files.begin());
}

wire::Inherited own_inherited() {
  wire::Inherited own;
  static_assert(wire::kLimits == RLIM_NLIMITS);
  for (std::size_t i = 0; i < wire::kLimits; ++i) {
    rlimit limit{};
    ::getrlimit(static_cast<__rlimit_resource>(i), &limit);
    own.limits[i][0] = limit.rlim_cur;
    own.limits[i][1] = limit.rlim_max;
  }
  own.nice = ::getpriority(PRIO_PROCESS, 0);
  own.policy = ::sched_getscheduler(0);
  sched_param parameter{};
  ::sched_getparam(0, &parameter);
  own.priority = parameter.sched_priority;
  constexpr int kOfProcess = 1;  // IOPRIO_WHO_PROCESS, ioprio_get(2): libc has no name for it
  own.io = static_cast<int>(::syscall(SYS_ioprio_get, kOfProcess, 0));
  for (int signal = 1; signal < 32; ++signal) {
    struct sigaction action{};
    if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) own.ignored |= 1U << (signal - 1);
  }
  const ::mode_t mask = ::umask(0);
  ::umask(mask);
  own.umask = static_cast<std::int32_t>(mask);
  own.no_huge_pages = ::prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0);
  constexpr int kGetMdwe = 66;  // Linux 6.3
  // The kernel's own answers, as the client has them.
  const auto answer = [](long value) { return value < 0 ? -errno : value; };
  own.no_new_code = static_cast<std::int32_t>(answer(::prctl(kGetMdwe, 0, 0, 0, 0)));
  own.merged_memory = static_cast<std::int32_t>(answer(::prctl(wire::kGetMemoryMerge, 0, 0, 0, 0)));
  own.memory_errors = static_cast<std::int32_t>(answer(::prctl(PR_MCE_KILL_GET, 0, 0, 0, 0)));
  own.secure_bits = static_cast<std::int32_t>(answer(::prctl(PR_GET_SECUREBITS, 0, 0, 0, 0)));
  ::prctl(PR_GET_TSC, &own.time_stamps, 0, 0, 0);
  ::syscall(SYS_sched_getattr, 0, own.scheduling, sizeof own.scheduling, 0);
  ::syscall(SYS_get_mempolicy, &own.memory_policy, own.memory_nodes, wire::kNodes, nullptr, 0);
  own.timer_slack = static_cast<std::uint64_t>(answer(::prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0)));
  struct statx program{};
  if (::statx(AT_FDCWD, "/proc/self/exe", 0, STATX_INO, &program) == 0) {
    own.program_device = std::uint64_t{program.stx_dev_major} << 32U | program.stx_dev_minor;
    own.program_inode = program.stx_ino;
  }
  constexpr unsigned kAsk = 0xffffffffU;
  own.personality = static_cast<std::uint32_t>(::personality(kAsk));
  return own;
}

}  // namespace belljar::warm
