// The commands of the room guard/.

#include "cli/guard/commands.h"

#include "cli/command_line.h"
#include "cli/full/components.h"

int belljar::cli::judge_and_scan(int argc, char** argv) {
  return serve_commands(own_words(argc, argv), "command rules, foreign settings, injection detection and reviews",
                        [](CommandLine& app, int& exit_code) {
                          add_rules(app, exit_code);
                          add_scan(app, exit_code);
                          add_policy_import(app, exit_code);
                          add_review(app, exit_code);
                        });
}
