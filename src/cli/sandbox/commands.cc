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
  std::vector<std::string> program;
  if (!words.empty() && words[0] == "exec") program = split_program(words);
  belljar::cli::add_create(app, words.empty() ? words : std::vector<std::string>(words.begin() + 1, words.end()), exit_code);
  belljar::cli::add_exec(app, std::move(program), exit_code);
  belljar::cli::add_ls(app, exit_code);
  belljar::cli::add_kill(app, exit_code);
  belljar::cli::add_logs(app, exit_code);
  belljar::cli::add_stats(app, exit_code);
  belljar::cli::add_network(app, exit_code);
  return app.parse_and_run(std::move(words), exit_code);
}
