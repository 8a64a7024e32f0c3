// The coding agents that Belljar knows: whose program a file is, by its name as text, and which variables move an agent's state.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/layer.h"

namespace belljar::policy {

struct Agent {
  std::string_view name;             // of its program
  std::string_view profile;          // profiles/NAME.toml
  std::string_view package;          // npm's
  std::string_view native_packages;  // how the names of those begin that hold its native program; empty: there are none
  // The option by which its own sandbox is switched off, as its documentation has it; empty: it has none, or needs none.
  std::string_view option, value;
  std::string_view others;  // names of options that say else, a space after each
};
std::span<const Agent> agents() noexcept;
const Agent* find_agent_of_profile(std::string_view profile) noexcept;

// Whose program the file is, all links resolved: by npm's package that it lies in, else by its name. nullptr: nobody's.
// Says nothing of who put it there: that is the caller's to ask.
const Agent* find_agent_of_program(std::string_view file) noexcept;

// Whether a file of an agent's state, by its path below the directory of filesystem.scratch ("/shell-snapshots/x"), only serves a
// run, or is made anew by the next: nobody misses it.
bool is_private_to_run(const Agent& agent, std::string_view path) noexcept;

// The agent's arguments with its own sandbox switched off: it makes namespaces, which a command inside may not, and everything that
// it starts would fail. As they are where they already speak of it. `arguments`: without the program's name.
std::vector<std::string> without_own_sandbox(const Agent& agent, std::vector<std::string> arguments);

// Puts the places in an agent's profile where its own variables (CODEX_HOME) say that its state lies; filesystem.scratch has the
// usual ones besides. Those that are not set, are relative (relative_variable) or "/" change nothing. `variable`: the caller's, by
// name; empty: not set.
void move_state(Layer& profile, const std::function<std::string(const char*)>& variable);

// Of `profile`'s agent: its variable that names a place from the current directory; nullptr: none does. Each directory is another
// place then, also the workspace, where what a command leaves would be obeyed outside.
const char* relative_variable(std::string_view profile, const std::function<std::string(const char*)>& variable);

// Files and directories where an agent keeps log-ins, keys or tokens: `profile`'s own are left out where the profile does not name
// them, since they are in the layer of its state. Below the home, in full.
void append_log_ins(std::vector<std::string>& paths, std::string_view home, std::string_view profile);
// The same where variables move an agent's state: whatever agent it is. What is relative counts from `cwd`.
struct LogIn {
  std::string_view profile;  // of the agent whose it is
  std::string path;
};
std::vector<LogIn> moved_log_ins(const std::string& cwd, const std::function<std::string(const char*)>& variable);

// Where the agent keeps its state: as its variable says, else below the home. `variable`: as of move_state().
std::string state_directory(const Agent& agent, const std::string& home, const std::function<std::string(const char*)>& variable);

// What an agent's profile lets persist, as it is written there: a directory ends in '/', everything else is a file.
std::vector<std::string> persistent_state(const Layer& profile);

}  // namespace belljar::policy
