// What to run inside a sandbox. A value.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace belljar {

struct Command {
  std::vector<std::string> argv;           // argv[0] is looked up in the sandbox's PATH unless it holds a slash
  std::string cwd;                         // absolute, inside the workspace; empty: the workspace
  std::map<std::string, std::string> env;  // added last, on top of the policy's environment
  bool operator==(const Command&) const = default;
};

// `sh -c text` with /bin/sh, or the user's $SHELL as a login shell (`-lc`).
Command shell_command(std::string text);
Command login_shell_command(std::string text, std::string shell);

}  // namespace belljar
