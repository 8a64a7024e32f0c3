// Sandboxes that stay: what asks their keepers (keep.cc, a component of belljar-full). A command line of its own, so that `run`
// builds none of these options.

#include "cli/sandbox/commands.h"

#include <string>
#include <utility>
#include <vector>

#include "cli/command_line.h"

int belljar::cli::run_keeper_command(int argc, char** argv) {
  std::vector<std::string> words = own_words(argc, argv);
  KeeperCommandWords given;
  if (!words.empty() && words[0] == "exec") given.program = split_program(words);
  if (!words.empty()) given.behind.assign(words.begin() + 1, words.end());
  return serve_commands(std::move(words), "sandboxes that stay", [&given](CommandLine& app, int& exit_code) {
    app.offer("ID", fitting_sandboxes);
    for (const KeeperCommand& command : kKeeperCommands)
      command.add(app.add_subcommand(std::string(command.word), command.help), given, exit_code);
  });
}
