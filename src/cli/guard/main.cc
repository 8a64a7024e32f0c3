// belljar-guard: the commands of the room guard/, handed over by `belljar` (cli/hand_over.cc), so that `run` does not link a
// parser.

#include "cli/command_line.h"
#include "cli/errors.h"
#include "cli/guard/commands.h"

int main(int argc, char** argv) {
  int exit_code = 0;
  belljar::cli::CommandLine app("belljar-guard: command rules, foreign settings, injection detection and reviews", "belljar");
  app.require_subcommand();
  belljar::cli::add_rules(app, exit_code);
  belljar::cli::add_scan(app, exit_code);
  belljar::cli::add_policy_import(app, exit_code);
  belljar::cli::add_review(app, exit_code);
  return app.parse_and_run(belljar::cli::own_words(argc, argv), exit_code);
}
