// The commands of the room guard/.

#include "cli/guard/commands.h"

#include "cli/command_line.h"
#include "cli/errors.h"
#include "cli/full/parts.h"

int belljar::cli::judge_and_scan(int argc, char** argv) {
  int exit_code = 0;
  belljar::cli::CommandLine app("command rules, foreign settings, injection detection and reviews", "belljar");
  app.require_subcommand();
  belljar::cli::add_rules(app, exit_code);
  belljar::cli::add_scan(app, exit_code);
  belljar::cli::add_policy_import(app, exit_code);
  belljar::cli::add_review(app, exit_code);
  return app.parse_and_run(belljar::cli::own_words(argc, argv), exit_code);
}
