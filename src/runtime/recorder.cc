// Only the first use of a path tells whether it existed before the command: later ones may see what
// the command itself made. Whether it is lost is asked at the end. Processes are counted when a new
// thread is seen for the first time, since only then their number can have grown; a count at each
// observation would read the tree from /proc each time.
#include "runtime/recorder.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/paths.h"
#include "kernel/process_tree.h"
#include "policy/paths.h"

namespace belljar::runtime {
namespace {

// The policy would not start with a path that is not there. What the command made and took away again is within a directory whose
// own change was seen.
bool is_lost(const policy::Touched& touched) {
  if (!touched.written && !touched.made) return false;
  const std::string path = touched.made ? parent_of(touched.path) : touched.path;
  struct stat facts{};
  return ::lstat(path.c_str(), &facts) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

}  // namespace

void Recorder::see(const broker::Observation& seen) {
  using Act = broker::Observation::Act;
  const std::scoped_lock lock(mutex_);
  if (const int init = init_pid_; init > 0 && tids_.size() < kMaxPaths && tids_.insert(seen.tid).second)
    tasks_ = std::max(tasks_, kernel::measure_tree(kernel::list_tree(init), false).tasks);
  if (seen.act == Act::kReach) {
    if (reached_.size() < kMaxPeers) reached_.insert(seen.path);
    return;
  }
  auto found = touched_.find(seen.path);
  if (found == touched_.end()) {
    if (touched_.size() >= kMaxPaths) {
      complete_ = false;
      return;
    }
    // Whether it was there counts at the first use: later ones may see what the command made.
    found =
        touched_.emplace(seen.path, policy::Touched{.path = seen.path, .exists = seen.exists, .directory = seen.directory}).first;
  }
  policy::Touched& touched = found->second;
  touched.looked = touched.looked || seen.act == Act::kQuery;
  touched.read = touched.read || seen.act == Act::kRead;
  touched.executed = touched.executed || seen.act == Act::kExec;
  touched.written = touched.written || seen.act == Act::kWrite;
  touched.made = touched.made || seen.act == Act::kMake;
}

policy::LearnInput Recorder::input() const {
  const std::scoped_lock lock(mutex_);
  policy::LearnInput input;
  for (const auto& [path, touched] : touched_) {
    input.touched.push_back(touched);
    input.touched.back().lost = is_lost(touched);
  }
  input.reached.assign(reached_.begin(), reached_.end());
  input.complete = complete_;
  input.tasks = tasks_;
  return input;
}

}  // namespace belljar::runtime
