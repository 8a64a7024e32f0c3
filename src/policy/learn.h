// From what a command used to the smallest policy that lets it run again. Pure: `belljar learn` does the recording.
//
// "Smallest" within what a policy can say: writes by directory where names are made and by file where only content changes; reads
// by file, or by directory where one was listed or many of its files were read; the system's own directories (/usr, /etc ...) as a
// whole. Nothing that was refused while learning is granted: it stands in the text as a comment, with what would permit it and its
// risk. Nor is a protected name that the policy in force does not open by name: an entry that names it would lift its protection,
// so a program could choose what is opened by trying. What failed opens nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "belljar/exec_result.h"
#include "policy/merge.h"

namespace belljar::policy {

// A path and all that was done with it.
struct Touched {
  std::string path;  // absolute, links resolved
  bool exists = false;
  bool directory = false;
  bool looked = false, read = false, executed = false;
  bool written = false;  // content or mode
  bool made = false;     // made, moved or removed: its directory changed
  bool lost = false;     // after the run the changed file or directory is not there: the attempt failed, or what it made is gone
};

struct LearnInput {
  std::vector<Touched> touched;
  std::vector<std::string> reached;  // host:port, connects that were let through or not
  bool complete = true;              // false: some of it found no room, so reads cannot be narrowed
  std::uint64_t tasks = 0;           // most processes and threads seen at once
  std::string program;
  ExecResult result;
};

struct Learned {
  std::string toml;
  std::vector<std::string> risks;  // one line for each grant that deserves a look; also in the text
};

// `in_force` is the policy the command ran under, `context` the place.
Learned learn(const LearnInput& input, const Effective& in_force, const MergeContext& context);

}  // namespace belljar::policy
