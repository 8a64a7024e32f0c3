// belljar: the command line. Builds the objects and hands them down; no singletons, no static registration.
#include <CLI/CLI.hpp>

#include "cli/commands.h"

int main(int argc, char** argv) {
  int exit_code = 0;
  CLI::App app{"belljar: run what a language model proposed, so that it can do useful work and no harm"};
  app.require_subcommand(1);
  CLI11_PARSE(app, argc, argv);
  return exit_code;
}
