// belljar create | exec | ls | kill | logs | stats | network: those who ask a keeper, in `belljar` itself; the keeper is
// belljar-full's. One file a command, as in cli/commands.h.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.h"

namespace belljar::cli {

// `words`: all that follow the command, as they were given; the keeper reads them once more.
void add_create(const OptionParser& app, std::vector<std::string> words, int& exit_code);
// `program`: the words after `--`, which are not ours to parse.
void add_exec(const OptionParser& app, std::vector<std::string> program, int& exit_code);
void add_ls(const OptionParser& app, int& exit_code);
void add_kill(const OptionParser& app, int& exit_code);
void add_logs(const OptionParser& app, int& exit_code);
void add_stats(const OptionParser& app, int& exit_code);
void add_network(const OptionParser& app, int& exit_code);

// All of these commands. `argv`: from the program's name on, or from the command.
int serve_kept(int argc, char** argv);

// What the process that `create` starts does: keep the sandbox. Returns its exit code, which nobody reads.
int keep();

// The ids and names of those that run.
std::vector<FittingWord> fitting_sandboxes();

}  // namespace belljar::cli
