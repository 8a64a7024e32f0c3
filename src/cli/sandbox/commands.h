// belljar create | exec | ls | kill | logs | stats | network: those who ask a keeper, in `belljar` itself; the keeper is
// belljar-full's. One file a command, as in cli/commands.h.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.h"

namespace belljar::cli {

// The words of such a command besides its options.
struct KeeperCommandWords {
  std::vector<std::string> behind;   // all that follow the command, as they were given: the keeper reads them once more
  std::vector<std::string> program;  // of `exec`: those after `--`, which are not ours to parse
};

void add_create(const OptionParser& app, const KeeperCommandWords& words, int& exit_code);
void add_exec(const OptionParser& app, const KeeperCommandWords& words, int& exit_code);
void add_ls(const OptionParser& app, const KeeperCommandWords& words, int& exit_code);
void add_kill(const OptionParser& app, const KeeperCommandWords& words, int& exit_code);
void add_logs(const OptionParser& app, const KeeperCommandWords& words, int& exit_code);
void add_stats(const OptionParser& app, const KeeperCommandWords& words, int& exit_code);
void add_network(const OptionParser& app, const KeeperCommandWords& words, int& exit_code);

struct KeeperCommand {
  std::string_view word;
  const char* help;
  void (*add)(const OptionParser& app, const KeeperCommandWords& words, int& exit_code);
};
inline constexpr std::array kKeeperCommands{
    KeeperCommand{"create", "Make a sandbox that stays, and print its id", add_create},
    KeeperCommand{"exec", "Run a program in a sandbox that stays", add_exec},
    KeeperCommand{"ls", "Show your sandboxes that stay", add_ls},
    KeeperCommand{"kill", "End sandboxes, with everything inside", add_kill},
    KeeperCommand{"logs", "What happened in a sandbox, also after its end", add_logs},
    KeeperCommand{"stats", "What a sandbox uses now", add_stats},
    KeeperCommand{"network", "Show or change the hosts that a sandbox that stays may reach", add_network},
};

// All of these commands. `argv`: from the program's name on, or from the command.
int run_keeper_command(int argc, char** argv);

// What the process that `create` starts does: keep the sandbox. Returns its exit code, which nobody reads.
int run_keeper();

// The ids and names of the sandboxes that run, for completion.
std::vector<FittingWord> fitting_sandboxes();

}  // namespace belljar::cli
