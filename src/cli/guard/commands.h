// One file a command, as in cli/commands.h.
#pragma once

#include <cstddef>
#include <string>

#include "belljar/result.h"
#include "cli/command_line.h"

namespace belljar::cli {

void add_rules(const OptionParser& app, int& exit_code);
void add_scan(const OptionParser& app, int& exit_code);
void add_policy_import(const OptionParser& app, int& exit_code);
void add_review(const OptionParser& app, int& exit_code);

// All of stdin, at most `limit` bytes and one more. Errors: it cannot be read; what was not read is not to be judged.
Result<std::string> read_stdin(std::size_t limit);

}  // namespace belljar::cli
