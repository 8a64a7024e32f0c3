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
};
std::span<const Agent> agents() noexcept;
const Agent* find_agent_of_profile(std::string_view profile) noexcept;

// Whose program the file is, all links resolved: by npm's package that it lies in, else by its name. nullptr: nobody's.
// Says nothing of who put it there: that is the caller's to ask.
const Agent* find_agent_of_program(std::string_view file) noexcept;

// Puts the places in an agent's profile where its own variables (CODEX_HOME) say that its state lies; filesystem.scratch has the
// usual ones besides. Those that are not set, are relative or "/" change nothing. `variable`: the caller's, by name; empty: not
// set.
void move_state(Layer& profile, const std::function<std::string(const char*)>& variable);

// What an agent's profile lets persist, as it is written there: a directory ends in '/', everything else is a file.
std::vector<std::string> persistent_state(const Layer& profile);

}  // namespace belljar::policy
