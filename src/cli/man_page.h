// Manual pages, made of the same values as `--help`.
#pragma once

#include <string>

#include "cli/command_info.h"

namespace belljar::cli {

// The page of a command in the language of man(7): belljar-run.1, and belljar.1 of the program itself.
std::string manual_page(const CommandInfo& command);
// On a terminal, in man(1)'s hands where that is installed; else as manual_page() has it. 0, or the exit code of the error that it
// printed.
int show_manual(const CommandInfo& command);

}  // namespace belljar::cli
