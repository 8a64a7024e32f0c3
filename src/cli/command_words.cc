#include "cli/command_words.h"

#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "belljar/command.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "cli/command_line.h"
#include "front/pump.h"
#include "front/stdio.h"

namespace belljar::cli {

std::vector<std::string> CommandWords::all() const {
  std::vector<std::string> words = program;
  if (shell_text) words.insert(words.begin(), {"-c", *shell_text});
  return words;
}

void add_pty_options(const OptionParser& command, CommandWords& words) {
  const Option pty =
      command.add_flag("--pty", words.pty, "Give the command a terminal of its own (default: when stdin and stdout are terminals)");
  command.add_flag("--no-pty", words.no_pty, "Give it pipes, whatever stdin and stdout are").excludes(pty);
}

Result<Command> command_from(const CommandWords& words, bool login, std::string_view usage) {
  const std::vector<std::string>& program = words.program;
  Command command;
  if (words.shell_text) {
    command = login ? login_shell_command(*words.shell_text, own_variable("SHELL")) : shell_command(*words.shell_text);
    // As `sh -c text NAME ARG...`.
    command.argv.insert(command.argv.end(), program.begin(), program.end());
    return command;
  }
  if (login && program.empty()) {
    const std::string shell = own_variable("SHELL");
    return Command{.argv = {shell.empty() ? "/bin/sh" : shell, "-l"}};
  }
  if (login)
    return Error(Code::kInvalidArgument, "--login is for shells, and a program was given")
        .next("use --login with -c 'shell text', or drop it");
  if (program.empty() || program[0].empty())
    return Error(Code::kInvalidArgument, "there is no command to run").next(std::string(usage));
  command.argv = program;
  return command;
}

front::StdioOptions streams_of(const CommandWords& words) {
  front::StdioOptions options;
  if (words.json) {
    options.output = front::OutputTo::kCapture;
    options.cap = kJsonOutputBytes;
  }
  if (words.pty) options.pty = front::Pty::kYes;
  if (words.no_pty) options.pty = front::Pty::kNo;
  // Shell text has no input of its own unless somebody gave some: a terminal was not given, it was just there.
  if (words.shell_text && !words.pty && front::fd_kind(0) == front::FdKind::kTerminal) options.input = front::Input::kNull;
  return options;
}

}  // namespace belljar::cli
