// belljar: the command line. Builds the objects and hands them down; no singletons, no static registration.
#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/errors.h"

int main(int argc, char** argv) {
  int exit_code = 0;
  CLI::App app{"belljar: run what a language model proposed, so that it can do useful work and no harm", "belljar"};
  app.require_subcommand(1);
  belljar::cli::add_policy(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help
    return app.exit(asked);
  } catch (const CLI::ParseError& refused) {
    return belljar::cli::print_error(belljar::cli::usage_error(app, refused));
  }
  return exit_code;
}
