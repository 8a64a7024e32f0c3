// What the words of `run` and `exec` ask to be run.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/command.h"
#include "belljar/result.h"

namespace belljar::cli {

// `-c TEXT` for /bin/sh, or with `--login` for the user's login shell; the words after `--` are a program, or as for `sh -c` the
// text's arguments. `usage` is what an error advises. Errors: kInvalidArgument, nothing to run, a login shell for a program.
Result<Command> command_from(const std::optional<std::string>& shell_text, const std::vector<std::string>& program, bool login,
                             std::string_view usage);

}  // namespace belljar::cli
