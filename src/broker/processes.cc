#include "broker/processes.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <string_view>

#include "base/format.h"
#include "base/unique_fd.h"
#include "kernel/process_tree.h"

namespace belljar::broker {
namespace {

constexpr int kMostAncestors = 4096;

// 0 when it is gone.
pid_t parent_of(pid_t process) {
  const UniqueFd file(::open(format("/proc/{}/stat", process).c_str(), O_RDONLY | O_CLOEXEC));
  char text[1024];
  const ssize_t size = file.valid() ? ::read(file.get(), text, sizeof text) : -1;
  if (size <= 0) return 0;
  const auto stat = kernel::parse_process_stat(std::string_view(text, static_cast<std::size_t>(size)));
  return stat ? stat->parent : 0;
}

}  // namespace

bool descends_from(pid_t process, pid_t guard) {
  for (int steps = 0; process > 1 && process != guard && steps < kMostAncestors; ++steps) {
    const pid_t parent = parent_of(process);
    if (parent == guard) return steps > 0;  // its child is init
    process = parent;
  }
  return false;
}

bool is_own_on_proc(std::string_view path, pid_t guard) {
  constexpr std::string_view kProc = "/proc";
  // Another procfs, of a chroot or a container: its numbers are not ours.
  if (path != kProc && !path.starts_with("/proc/")) return false;
  path.remove_prefix(kProc.size());
  if (path.starts_with('/')) path.remove_prefix(1);
  pid_t number = 0;
  const auto [end, error] = std::from_chars(path.data(), path.data() + path.size(), number);
  if (error != std::errc() || end == path.data()) return true;
  return descends_from(number, guard);
}

}  // namespace belljar::broker
