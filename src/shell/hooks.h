// Options of ordinary programs whose value is another program: `tar --to-command=TEXT`, `git -c core.pager=TEXT`; and variables
// that say what programs run.
#pragma once

#include <string_view>
#include <vector>

#include "shell/script.h"
#include "shell/wrappers.h"

namespace belljar::shell {

// The programs that `command` starts because its options say so. The command itself is judged, too.
std::vector<InnerCommand> started_by_options(const SimpleCommand& command);
// A variable that changes what other programs run or load.
bool is_risky_variable(std::string_view name) noexcept;

}  // namespace belljar::shell
