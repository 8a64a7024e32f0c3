// Commands that only read, for plan mode and for asking less: a list of what is known, everything else is not read-only. The list
// says that a command means to read; it does not hold it to that, only the sandbox does.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shell/script.h"

namespace belljar::guard {

// Why `command` is not known to only read; nullopt when it is.
std::optional<std::string> why_not_read_only(const shell::SimpleCommand& command);
// The same of its redirections and assignments alone: for a wrapper, whose command is judged by itself.
std::optional<std::string> why_not_surroundings(const shell::SimpleCommand& command);

// Whether it opens a file for writing, as far as is known before the run: no descriptor, not /dev/null.
bool writes_a_file(const shell::Redirect& redirect) noexcept;

// The programs that are known, and what is refused of each, for `belljar rules list`.
struct ReadOnlyProgram {
  std::string_view name;
  std::string_view refused;  // options (`-o`, `--output`), separated by spaces; "" nothing; in words where the check is of its own
  std::string_view only;     // if not empty: the first operand must be one of these sub-commands
};
const std::vector<ReadOnlyProgram>& read_only_programs();

}  // namespace belljar::guard
