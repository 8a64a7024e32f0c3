#include "kernel/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/format.h"
#include "belljar/units.h"
#include "kernel/small_file.h"

namespace belljar::kernel {
namespace {

// Numeric names in the directory `path`.
std::vector<int> numbers_in(const char* path) {
  std::vector<int> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir{::opendir(path), ::closedir};
  if (!dir) return numbers;
  while (const dirent* entry = ::readdir(dir.get()))
    if (const auto number = parse_number(entry->d_name)) numbers.push_back(static_cast<int>(*number));
  return numbers;
}

bool has_children_files() {
  static const bool present = ::access(format("/proc/self/task/{}/children", ::getpid()).c_str(), R_OK) == 0;
  return present;
}

void append_children(int pid, std::vector<int>& found) {
  for (const int thread : numbers_in(format("/proc/{}/task", pid).c_str())) {
    const auto text = read_small_file(AT_FDCWD, format("/proc/{}/task/{}/children", pid, thread));
    for (std::string_view rest = text ? std::string_view(*text) : std::string_view{}; !rest.empty();)
      if (const auto child = parse_number(next_field(rest, ' '))) found.push_back(static_cast<int>(*child));
  }
}

std::vector<int> list_by_parents(int root) {
  std::unordered_multimap<int, int> children;
  for (const int pid : numbers_in("/proc"))
    if (const auto stat = read_process_stat(pid)) children.emplace(stat->parent, pid);
  std::vector<int> tree{root};
  for (std::size_t i = 0; i < tree.size(); ++i) {
    const auto [from, to] = children.equal_range(tree[i]);
    for (auto at = from; at != to; ++at) tree.push_back(at->second);
  }
  return tree;
}

// Pages from statm: resident, and the part of it that is shared (files and shmem).
struct Resident {
  std::uint64_t pages = 0, shared = 0;
};
Resident read_resident(int pid) {
  Resident resident;
  const auto text = read_small_file(AT_FDCWD, format("/proc/{}/statm", pid));
  if (!text) return resident;
  std::string_view rest = *text;
  next_field(rest, ' ');
  resident.pages = parse_number(next_field(rest, ' ')).value_or(0);
  resident.shared = parse_number(next_field(rest, ' ')).value_or(0);
  return resident;
}

// Proportional set size in KiB: "Pss:        1234 kB".
std::optional<std::uint64_t> read_pss(int pid) {
  const auto text = read_small_file(AT_FDCWD, format("/proc/{}/smaps_rollup", pid));
  if (!text) return std::nullopt;
  for (std::string_view rest = *text; !rest.empty();) {
    std::string_view line = next_field(rest, '\n');
    if (!line.starts_with("Pss:")) continue;
    line.remove_prefix(std::min(line.find_first_of("0123456789"), line.size()));
    return parse_number(line);
  }
  return std::nullopt;
}

}  // namespace

std::optional<ProcessStat> parse_process_stat(std::string_view text) noexcept {
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 >= text.size()) return std::nullopt;
  text.remove_prefix(name_end + 2);
  ProcessStat stat;
  // Field 3 (state) comes first here; 4 is ppid, 14-17 utime stime cutime cstime, 20 num_threads, 22 starttime.
  for (int field = 3; field <= 22; ++field) {
    const std::string_view value = next_field(text, ' ');
    if (field == 3) stat.state = value.empty() ? '\0' : value.front();
    if (field == 3) continue;
    const auto number = parse_number(value);
    if (field == 4 && !number) return std::nullopt;
    if (field == 4) stat.parent = static_cast<int>(*number);
    if (field >= 14 && field <= 17) stat.cpu_ticks += number.value_or(0);
    if (field == 20) stat.threads = number.value_or(0);
    if (field == 22) stat.started_ticks = number.value_or(0);
  }
  return stat;
}

std::optional<ProcessStat> read_process_stat(int pid) {
  const auto text = read_small_file(AT_FDCWD, format("/proc/{}/stat", pid));
  return text ? parse_process_stat(*text) : std::nullopt;
}

std::vector<int> list_tree(int root) {
  if (root <= 0 || !read_process_stat(root)) return {};
  if (!has_children_files()) return list_by_parents(root);
  std::vector<int> tree{root};
  for (std::size_t i = 0; i < tree.size(); ++i) append_children(tree[i], tree);
  // A process that moved to another parent while we read may be listed twice.
  std::sort(tree.begin(), tree.end());
  tree.erase(std::unique(tree.begin(), tree.end()), tree.end());
  return tree;
}

TreeUsage measure_tree(const std::vector<int>& pids, bool memory, Bytes exact_above) {
  TreeUsage usage;
  std::uint64_t ticks = 0, own_pages = 0, shared_pages = 0;
  for (const int pid : pids) {
    if (const auto stat = read_process_stat(pid)) {
      usage.tasks += stat->threads;
      ticks += stat->cpu_ticks;
    }
    if (!memory) continue;
    const Resident resident = read_resident(pid);
    own_pages += resident.pages - std::min(resident.shared, resident.pages);
    shared_pages = std::max(shared_pages, resident.shared);
  }
  static const auto kTicks = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  static const auto kPage = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  usage.cpu = std::chrono::microseconds(ticks * 1'000'000 / kTicks);
  usage.memory = Bytes{(own_pages + shared_pages) * kPage};
  if (!memory || usage.memory <= exact_above) return usage;
  std::uint64_t exact = 0;
  for (const int pid : pids) {
    const auto pss = read_pss(pid);
    if (!pss) return usage;
    exact += *pss * 1024;
  }
  usage.memory = Bytes{exact};
  return usage;
}

}  // namespace belljar::kernel
