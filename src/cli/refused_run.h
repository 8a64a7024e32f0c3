// A `run` whose command line is refused before anything of it is done: its report and its --json say so, and no earlier report
// stands for it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "belljar/error.h"
#include "cli/command_line.h"

namespace belljar::cli {

// `--hide="$UNSET"` gives `--hide=`: CLI11 would take the next word for the value, which may be an option that protects. The error
// of the first such word before `--`.
std::optional<Error> find_empty_option(std::span<const char* const> words);

// Writes the failed start to --report and --json. `app` has parsed what it could of `run`.
void report_refusal(const OptionParser& app, const Error& refused);

// Tells find_empty_option()'s error and reports it, and returns the exit code. `words`: behind the program's name, up to `--`.
int refuse_empty_option(const CommandLine& app, std::vector<std::string> words, const Error& refused);

}  // namespace belljar::cli
