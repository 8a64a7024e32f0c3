#include "support/leftovers.h"

#include <fcntl.h>
#include <linux/prctl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/unique_fd.h"
#include "support/eventually.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

namespace fs = std::filesystem;

struct Stat {
  pid_t parent = 0;
  char state = 'Z';
  std::string name;
};

// proc(5): "pid (name) state ppid ..."; the name may hold anything, so its end is the last parenthesis.
Stat read_stat(pid_t pid) {
  const std::string text = read_what_is_there(format("/proc/{}/stat", pid));
  const auto open = text.find('(');
  const auto close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close + 4 > text.size()) return {};
  return {std::atoi(text.c_str() + close + 4), text[close + 2], text.substr(open + 1, close - open - 1)};
}

std::set<std::string> mounts() {
  std::set<std::string> result;
  std::istringstream lines(read_what_is_there("/proc/thread-self/mountinfo"));
  for (std::string line; std::getline(lines, line);) result.insert(line);
  return result;
}

std::string describe(const fs::path& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) return "gone";
  std::string text = format("mode {:o} owner {}:{}", info.st_mode, info.st_uid, info.st_gid);
  if (S_ISREG(info.st_mode))
    text += format(" size {} hash {:x}", info.st_size, std::hash<std::string>()(read_what_is_there(path.string())));
  std::error_code ignored;
  if (S_ISLNK(info.st_mode)) text += " -> " + fs::read_symlink(path, ignored).string();
  return text;
}

// Those of `added` that are in `now()` for as long as we are patient. Others come and go meanwhile.
template <class Now>
std::set<std::string> that_stay(std::set<std::string> added, Now now, std::chrono::milliseconds patience) {
  eventually(
      [&] {
        const std::set<std::string> current = added.empty() ? added : now();
        std::erase_if(added, [&](const std::string& entry) { return !current.contains(entry); });
        return added.empty();
      },
      patience);
  return added;
}

std::set<std::string> difference(const std::set<std::string>& now, const std::set<std::string>& before) {
  std::set<std::string> result;
  std::ranges::set_difference(now, before, std::inserter(result, result.end()));
  return result;
}

// /sys/fs/cgroup is the whole machine's: a group of another pid namespace, which its name tells (kernel/cgroup.h), is nobody's
// here.
std::set<std::string> own_cgroups() {
  struct stat own{};
  const std::string tail = ::stat("/proc/self/ns/pid", &own) == 0 ? format(".{}", own.st_ino) : "";
  std::set<std::string> result = belljar_cgroups();
  std::erase_if(result, [&](const std::string& path) { return !path.ends_with(tail); });
  return result;
}

// Below these, engines, session managers and people mount what is theirs, at any time.
constexpr std::string_view kNeighbours[] = {"/media/", "/mnt/", "/run/", "/snap/", "/tmp/", "/var/"};

// The names of directories of TempDir in the line of a mount. Not their paths: a bind mount tells its root within the file system.
std::vector<std::string> temp_dirs_in(std::string_view line) {
  constexpr std::string_view kName = "belljar-test.";
  constexpr std::size_t kRandom = 6;  // mkdtemp(3)
  std::vector<std::string> found;
  for (std::size_t at = 0; (at = line.find(kName, at)) != std::string_view::npos; at += kName.size())
    found.emplace_back(line.substr(at, kName.size() + kRandom));
  return found;
}

}  // namespace

// Not a stream: its buffer throws when a process ends between open and read (ESRCH).
std::string read_what_is_there(const std::string& path) {
  std::string text;
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char buffer[16384];
  for (ssize_t got = 0; file.valid() && (got = ::read(file.get(), buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  return text;
}

bool is_ours(const std::string& mount, const std::vector<std::string>& directories) {
  if (std::ranges::any_of(directories, [&](const std::string& path) { return mount.find(path) != std::string::npos; })) return true;
  const std::vector<std::string> temp_dirs = temp_dirs_in(mount);
  if (std::ranges::any_of(temp_dirs, is_temp_dir_of_ours)) return true;
  if (!temp_dirs.empty()) return false;
  if (mount.find("belljar") != std::string::npos) return true;
  // proc(5): "id parent device root mount-point ..."
  std::istringstream words(mount);
  std::string point;
  for (int i = 0; i < 5; ++i) words >> point;
  return std::ranges::none_of(kNeighbours, [&](std::string_view place) { return point.starts_with(place); });
}

// With BELLJAR_WARM=1 runs leave sandboxes for the next ones, in which nothing runs yet.
bool is_idle_spare(pid_t pid, std::string_view words, const std::map<pid_t, Stat>& all) {
  if (words.find(" __spare") == std::string_view::npos) return false;
  return std::ranges::none_of(all, [&](const auto& one) {
    const auto parent = all.find(one.second.parent);
    return parent != all.end() && parent->second.parent == pid && one.second.state != 'Z';
  });
}

std::map<pid_t, std::string> descendants() {
  std::map<pid_t, Stat> all;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid > 0) all[pid] = read_stat(pid);
  }
  std::map<pid_t, std::string> result;
  for (const auto& [pid, stat] : all) {
    if (stat.state == 'Z' || stat.state == 'X') continue;
    pid_t up = stat.parent;
    for (int depth = 0; up > 1 && up != ::getpid() && depth < 200; ++depth) up = all.contains(up) ? all[up].parent : 0;
    if (up != ::getpid() || pid == ::getpid()) continue;
    std::string words = read_what_is_there(format("/proc/{}/cmdline", pid));
    std::ranges::replace(words, '\0', ' ');
    if (stat.name == "belljar" && is_idle_spare(pid, words, all)) {
      ::kill(pid, SIGKILL);  // what it was kept for is another test's business
      continue;
    }
    result[pid] = format("process {} ({}): {}", pid, escaped(stat.name), escaped(words));
  }
  return result;
}

char state_of(pid_t pid) { return read_stat(pid).state; }

bool is_running(pid_t pid) {
  const char state = state_of(pid);
  return state != 'Z' && state != 'X';
}

std::set<std::string> belljar_cgroups() {
  std::set<std::string> result;
  std::error_code ignored;
  for (auto it = fs::recursive_directory_iterator("/sys/fs/cgroup", fs::directory_options::skip_permission_denied, ignored);
       it != fs::recursive_directory_iterator(); it.increment(ignored)) {
    if (it->path().filename().string().starts_with("belljar.") && it->is_directory(ignored)) result.insert(it->path().string());
  }
  return result;
}

// Of a run that goes on and is none of ours: tests run beside each other. The name begins with the pid of the front that made it.
bool is_anothers(const std::string& cgroup) {
  const std::size_t at = cgroup.rfind("/belljar.");
  const pid_t front = std::atoi(cgroup.c_str() + at + std::string_view("/belljar.").size());
  return front > 0 && front != ::getpid() && !descendants().contains(front) && fs::exists(format("/proc/{}", front));
}

std::set<std::string> cgroups_left() {
  std::set<std::string> result = own_cgroups();
  std::erase_if(result, is_anothers);
  return result;
}

std::map<std::string, std::string> describe_tree(const std::string& directory) {
  std::map<std::string, std::string> result{{directory, describe(directory)}};
  std::error_code ignored;
  for (auto it = fs::recursive_directory_iterator(directory, fs::directory_options::skip_permission_denied, ignored);
       it != fs::recursive_directory_iterator(); it.increment(ignored)) {
    result[it->path().string()] = describe(it->path());
  }
  return result;
}

Leftovers::Leftovers(std::vector<std::string> directories) : directories_(std::move(directories)) {
  // Orphans come to us instead of to pid 1, prctl(2), so that we recognise them.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (const auto& [pid, line] : descendants()) processes_.insert(pid);
  mounts_ = mounts();
  cgroups_ = own_cgroups();
  for (const std::string& directory : directories_) files_.merge(describe_tree(directory));
}

std::string Leftovers::report(std::chrono::milliseconds patience) const {
  // Not that_stay(): a process may begin another and end, or execute a program, and what is left has another line then.
  std::map<pid_t, std::string> left;
  eventually(
      [&] {
        left = descendants();
        std::erase_if(left, [&](const auto& entry) { return processes_.contains(entry.first); });
        return left.empty();
      },
      patience);
  std::string result;
  for (const auto& [pid, line] : left) result += line + "\n";
  std::set<std::string> added = difference(mounts(), mounts_);
  std::erase_if(added, [&](const std::string& line) { return !is_ours(line, directories_); });
  for (const std::string& line : that_stay(added, mounts, patience)) result += "mount " + line + "\n";
  for (const std::string& path : that_stay(difference(cgroups_left(), cgroups_), cgroups_left, patience))
    result += "cgroup " + path + "\n";
  std::map<std::string, std::string> now;
  for (const std::string& directory : directories_) now.merge(describe_tree(directory));
  for (const auto& [path, text] : now) {
    const auto before = files_.find(path);
    if (before == files_.end()) result += format("file {} is new: {}\n", escaped(path), text);
    else if (before->second != text) result += format("file {} changed: {}, was {}\n", escaped(path), text, before->second);
  }
  for (const auto& [path, text] : files_) {
    if (!now.contains(path)) result += format("file {} is gone\n", escaped(path));
  }
  return result;
}

}  // namespace belljar::test
