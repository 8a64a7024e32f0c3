// Proves that a run left nothing behind: processes, mounts, cgroups, files.
//
//   Leftovers left({workspace.path()});
//   belljar({"run", "--", "true"});
//   EXPECT_EQ(left.report(), "");
//
// Other tests run at the same time, and others use the machine. So a process counts when it descends from this test (which adopts
// orphans while a Leftovers lives). A cgroup counts when it is new at the time of the report, of our pid namespace, and of no front
// that lives and is another's. A mount counts when it is new and is_ours(). Each counts when it does not go away within the
// patience.
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
  std::string report(std::chrono::milliseconds patience = std::chrono::seconds(60)) const;

 private:
  std::vector<std::string> directories_;
  std::set<pid_t> processes_;
  std::set<std::string> mounts_, cgroups_;
  std::map<std::string, std::string> files_;
};

// Of a file below /proc, which may be gone in the midst of it.
std::string read_what_is_there(const std::string& path);
// Processes, not yet ended, that descend from this one; a line each: pid, name, command line.
std::map<pid_t, std::string> descendants();
// Whether this line of /proc/self/mountinfo may be of this test: it names a directory of it (one that was given, a TempDir of this
// process) or belljar, or it lies where nobody but an escape would mount, which is all but the inside of kNeighbours. A TempDir of
// another process is another's.
bool is_ours(const std::string& mount, const std::vector<std::string>& directories);
// As proc(5) has it: 'T' is stopped. 'Z' where there is no such process.
char state_of(pid_t pid);
// Whether process `pid` runs: it is there, and no zombie.
bool is_running(pid_t pid);
// Directories named belljar.* below any mounted cgroup hierarchy.
std::set<std::string> belljar_cgroups();
// Each path below `directory` with type, mode, owner, size and a hash of the content (or the link's target).
std::map<std::string, std::string> describe_tree(const std::string& directory);

}  // namespace belljar::test
