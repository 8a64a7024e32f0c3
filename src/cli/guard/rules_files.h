// Where command rules come from on this machine: the user's file, files that are named, the workspace's own.
#pragma once

#include <string>

#include "belljar/result.h"
#include "guard/rules.h"

namespace belljar::cli {

// $XDG_CONFIG_HOME/belljar/rules.toml, else ~/.config/belljar/rules.toml; empty when there is no home. One thread, before anything
// starts, changes the environment.
std::string user_rules_file();

// Adds the rules of a file; of one that lies inside `workspace` (canonical), whoever named it, only what narrows. Absent is fine
// unless it was `named`. Errors: as read_policy_file and parse_rules.
Result<void> add_rules_file(guard::RuleSet& set, const std::string& path, const std::string& workspace, bool named);

}  // namespace belljar::cli
