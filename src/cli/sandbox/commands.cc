// Sandboxes that stay: what asks their keepers (keep.cc, a part of belljar-full). A command line of its own, so that `run` builds
// none of these options.

#include "cli/sandbox/commands.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cli/command_line.h"
#include "cli/errors.h"

namespace {

// The words after the first `--` belong to the program; CLI11 would take a second `--` out of them.
std::vector<std::string> split_program(std::vector<std::string>& words) {
  const auto dashes = std::ranges::find(words, "--");
  if (dashes == words.end()) return {};
  std::vector<std::string> program(dashes + 1, words.end());
  words.erase(dashes, words.end());
  return program;
}

}  // namespace

int belljar::cli::serve_kept(int argc, char** argv) {
  std::vector<std::string> words = belljar::cli::own_words(argc, argv);
  int exit_code = 0;
  belljar::cli::CommandLine app("sandboxes that stay", "belljar");
  app.require_subcommand();
  app.offer("ID", belljar::cli::fitting_sandboxes);
  KeptWords given;
  if (!words.empty() && words[0] == "exec") given.program = split_program(words);
  if (!words.empty()) given.behind.assign(words.begin() + 1, words.end());
  for (const KeptCommand& command : kKeptCommands)
    command.add(app.add_subcommand(std::string(command.word), command.help), given, exit_code);
  return app.parse_and_run(std::move(words), exit_code);
}
