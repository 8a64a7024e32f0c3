// belljar create | exec | ls | kill | logs | stats | network: a program of its own, handed over by `belljar` (cli/hand_over.cc).
// One file a command, as in cli/commands.h.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace belljar::cli {

// `words`: all that follow the command, as they were given; the keeper reads them once more.
void add_create(CLI::App& app, std::vector<std::string> words, int& exit_code);
// `program`: the words after `--`, which are not ours to parse.
void add_exec(CLI::App& app, std::vector<std::string> program, int& exit_code);
void add_ls(CLI::App& app, int& exit_code);
void add_kill(CLI::App& app, int& exit_code);
void add_logs(CLI::App& app, int& exit_code);
void add_stats(CLI::App& app, int& exit_code);
void add_network(CLI::App& app, int& exit_code);

// What the process that `create` starts does: keep the sandbox. Returns its exit code, which nobody reads.
int keep();

}  // namespace belljar::cli
