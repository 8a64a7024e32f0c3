#include "warm/caller.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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
  constexpr std::string_view kLines[] = {"Umask", "Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd",
                                         "CapAmb", "NoNewPrivs", "Seccomp", "Seccomp_filters", "Speculation_Store_Bypass",
                                         "SpeculationIndirectBranch", "Cpus_allowed", "Mems_allowed"};
  std::string rights;
  while (!status.empty()) {
    const std::string_view line = status.substr(0, std::min(status.find('\n'), status.size() - 1) + 1);
    status.remove_prefix(line.size());
    if (std::ranges::find(kLines, line.substr(0, line.find(':'))) != std::end(kLines)) rights += line;
  }
  return rights;
}

// Ignored signals, without the two that are libc's own: posix_spawn(3) leaves one of them ignored.
std::uint64_t ignored_signals(std::string_view status) {
  constexpr std::string_view kLine = "\nSigIgn:\t";
  const std::size_t at = status.find(kLine);
  if (at == std::string_view::npos) return ~std::uint64_t{0};
  std::uint64_t set = 0;
  std::from_chars(status.data() + at + kLine.size(), status.data() + status.size(), set, 16);
  constexpr std::uint64_t kOfLibc = std::uint64_t{3} << 31U;  // 32 and 33
  return set & ~kOfLibc;
}

}  // namespace

std::optional<Caller> Caller::look_at(pid_t pid) {
  const UniqueFd process(::open(format("/proc/{}", pid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!process.valid()) return std::nullopt;
  Caller caller;
  const auto status = kernel::read_small_file(process.get(), "status");
  if (!status) return std::nullopt;
  caller.status = rights_of(*status);
  caller.ignored = ignored_signals(*status);
  caller.groups = kernel::read_small_file(process.get(), "cgroup").value_or("");
  caller.label = kernel::read_small_file(process.get(), "attr/current").value_or("");
  caller.oom = kernel::read_small_file(process.get(), "oom_score_adj").value_or("");
  for (std::size_t i = 0; i < caller.limits.size(); ++i) {
    rlimit limit{};
    if (::prlimit(pid, static_cast<__rlimit_resource>(i), nullptr, &limit) != 0) return std::nullopt;
    caller.limits[i] = {limit.rlim_cur, limit.rlim_max};
  }
  errno = 0;
  caller.nice = ::getpriority(PRIO_PROCESS, static_cast<id_t>(pid));
  if (errno != 0) return std::nullopt;
  caller.policy = ::sched_getscheduler(pid);
  sched_param parameter{};
  if (::sched_getparam(pid, &parameter) == 0) caller.priority = parameter.sched_priority;
  constexpr int kOfProcess = 1;  // IOPRIO_WHO_PROCESS, ioprio_get(2): libc has no name for it
  caller.io = static_cast<int>(::syscall(SYS_ioprio_get, kOfProcess, pid));
  constexpr const char* kFiles[] = {"ns/user", "ns/mnt",    "ns/pid",  "ns/net",               "ns/ipc", "ns/uts",
                                    "ns/cgroup", "ns/time", "ns/pid_for_children", "cwd",   "root",   "exe"};
  for (std::size_t i = 0; i < std::size(kFiles); ++i) {
    struct stat file{};
    // A kernel without namespaces of that kind has no such name. The last is there as long as the process is, so that nothing above
    // was of another one with the same pid.
    if (::fstatat(process.get(), kFiles[i], &file, 0) != 0 && (errno != ENOENT || i + 3 >= std::size(kFiles))) return std::nullopt;
    caller.files[i] = {file.st_dev, file.st_ino};
  }
  return caller;
}

}  // namespace belljar::warm
