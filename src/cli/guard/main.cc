// belljar-guard: the commands of the room guard/, handed over by `belljar` (cli/hand_over.cc), so that `run` does not link a
// parser.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "cli/errors.h"
#include "cli/guard/commands.h"

int main(int argc, char** argv) {
  int exit_code = 0;
  CLI::App app("belljar-guard: command rules, foreign settings, injection detection and reviews", "belljar");
  app.require_subcommand(1);
  // `belljar` passes its own words on: argv[0] is the first of them.
  std::vector<std::string> words(argv, argv + argc);
  const bool direct = words[0].find('/') != std::string::npos || words[0].starts_with("belljar");
  std::vector<std::string> rest(words.begin() + (direct ? 1 : 0), words.end());
  std::reverse(rest.begin(), rest.end());  // CLI11 takes them from the back
  belljar::cli::add_rules(app, exit_code);
  belljar::cli::add_scan(app, exit_code);
  belljar::cli::add_policy_import(app, exit_code);
  belljar::cli::add_review(app, exit_code);
  return belljar::cli::parse_and_run(app, [&] { app.parse(rest); }, exit_code);
}
