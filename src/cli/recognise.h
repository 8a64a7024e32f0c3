// Which coding agent a command line starts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "belljar/command.h"
#include "cli/load.h"
#include "policy/agents.h"

namespace belljar::cli {

struct StartedAgent {
  const policy::Agent* agent = nullptr;
  std::string named;        // the file that was found, its directory resolved
  std::string file;         // where that leads, all links resolved
  std::string interpreter;  // as found; empty: the file itself is run
};

// As execvp(3), but what is relative (an empty part of PATH, too) is where the command starts, and that it may write: nothing then.
std::string find_program(const std::string& name, const std::string& path);

// By the program, or by the script that node or bun is given: looked for in `path` (PATH inside). Not npx, which
// runs what the workspace has under that name.
std::optional<StartedAgent> find_started_agent(const Command& command, const std::string& path);

// Whether the command, or an earlier one under this policy, may have put that program there, or another one would run in its
// place: then it gets no agent's rights.
bool may_be_planted(const StartedAgent& started, const LoadedPolicy& loaded);

// PATH as a command has it under this policy.
std::string path_inside(const Environment& environment);

// load_policy(), under the agent's profile where the command starts an agent and nobody chose a profile; says so on stderr. Under
// that profile, whoever chose it, the agent's own sandbox is switched off in `command`.
Result<LoadedPolicy> load_policy_for(Command& command, const PolicyFlags& flags);

}  // namespace belljar::cli
