// Proves that a run left nothing behind: processes, mounts, cgroups, files.
//
//   Leftovers left({workspace.path()});
//   belljar({"run", "--", "true"});
//   EXPECT_EQ(left.report(), "");
//
// Other tests run at the same time. So a process counts when it descends from this test (which adopts orphans while a Leftovers
// lives), and a mount or cgroup counts when it is new at the time of the report and does not go away within the patience.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace belljar::test {

class Leftovers {
 public:
  explicit Leftovers(std::vector<std::string> directories = {});

  // One line for each thing that is left or, in the directories, changed; empty when there is none.
  std::string report(std::chrono::milliseconds patience = std::chrono::seconds(5)) const;

 private:
  std::vector<std::string> directories_;
  std::set<pid_t> processes_;
  std::set<std::string> mounts_, cgroups_;
  std::map<std::string, std::string> files_;
};

// Processes, not yet ended, that descend from this one; a line each: pid, name, command line.
std::map<pid_t, std::string> descendants();
// Directories named belljar.* below any mounted cgroup hierarchy.
std::set<std::string> belljar_cgroups();
// Each path below `directory` with type, mode, owner, size and a hash of the content (or the link's target).
std::map<std::string, std::string> describe_tree(const std::string& directory);

}  // namespace belljar::test
