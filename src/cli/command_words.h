// The command that the words of `run` and `exec` ask for, and its streams.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/command.h"
#include "belljar/result.h"
#include "cli/command_line.h"
#include "front/stdio.h"

namespace belljar::cli {

// Of each stream that --json captures, unless limits.output_bytes says otherwise.
inline constexpr std::uint64_t kJsonOutputBytes = 200'000;

// Must outlive the parsing of the command that its options are registered on.
struct CommandWords {
  std::optional<std::string> shell_text;  // -c
  std::vector<std::string> program;       // after `--`
  bool json = false, pty = false, no_pty = false;

  // As they were given: `-c TEXT` and what follows it.
  std::vector<std::string> all() const;
};

// --pty and --no-pty.
void add_pty_options(const OptionParser& command, CommandWords& words);

// `-c TEXT` for /bin/sh, or with `--login` for the user's login shell; the words after `--` are a program, or as for `sh -c` the
// text's arguments. `usage` is what an error advises. Errors: kInvalidArgument, nothing to run, a login shell for a program.
Result<Command> command_from(const CommandWords& words, bool login, std::string_view usage);

front::StdioOptions streams_of(const CommandWords& words);

}  // namespace belljar::cli
