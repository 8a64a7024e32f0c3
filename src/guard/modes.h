// Modes of files that a command sets: chmod(1), umask, install -m, mkdir -m, setfacl(1).
#pragma once

#include <optional>
#include <string>

#include "shell/script.h"

namespace belljar::guard {

struct ModeDoubt {
  bool known = false;  // the mode stands in the text: it is so; otherwise only the run decides
  std::string reason;
};
// It lets everybody write, or may.
std::optional<ModeDoubt> open_mode(const shell::SimpleCommand& command);
// It makes a program run as its owner or group.
std::optional<std::string> setuid_mode(const shell::SimpleCommand& command);

}  // namespace belljar::guard
