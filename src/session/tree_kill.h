// Ends the whole tree of one command of a live sandbox and nothing else in it.
//
// Commands of a session adopt their orphans (ExecRequest::adopt), so all that a command started is below it in the tree of
// processes for as long as it lives: daemonised, double-forked and TERM-ignoring descendants included. What it left behind when it
// ended by itself (a server in the background) belongs to the sandbox and is not touched.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/unique_fd.h"

namespace belljar::session {

// The processes of one command at one moment, itself first, held by pidfds: no number can come to mean another process.
class CommandTree {
 public:
  // `init_pid`: pid 1 of the sandbox as we see it. `inside`: the command's pid as init sees it. Empty when it is gone.
  static CommandTree find(int init_pid, int inside);

  bool empty() const noexcept { return processes_.empty(); }
  void signal(int number) const noexcept;
  // KILL to all found, and to what they forked meanwhile, until nothing of it runs. The command itself goes last, since its
  // descendants are found through it. False when they fork faster than they can be ended: then only the sandbox can be.
  bool end() const noexcept;

 private:
  struct Process {
    int pid = 0;
    UniqueFd handle;
  };
  std::vector<Process> processes_;
};

// Children that pid 1 got while a command was being ended, but for commands: processes that were forked after TERM and lost their
// parent with the command. One that another command left behind in the same moment looks no different, and goes too.
class Orphans {
 public:
  Orphans() = default;
  // Counts from now on.
  explicit Orphans(int init_pid);
  // KILL to them and all below, until none is there. `commands`: the pids of all that run, as init sees them; asked after each
  // look, so that it knows of every one that was seen; nullopt: nobody can tell. False: they fork faster than they can be ended, or
  // nobody can tell which they are.
  bool end(const std::function<std::optional<std::vector<int>>()>& commands) const;

 private:
  bool end_orphan(int pid, const UniqueFd& handle, const std::vector<int>& running) const;
  int init_pid_ = 0;
  std::vector<int> before_;
};

}  // namespace belljar::session
