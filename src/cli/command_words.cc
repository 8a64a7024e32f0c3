#include "cli/command_words.h"

#include "base/environment.h"
#include "belljar/error.h"

namespace belljar::cli {

Result<Command> command_from(const std::optional<std::string>& shell_text, const std::vector<std::string>& program, bool login,
                             std::string_view usage) {
  Command command;
  if (shell_text) {
    command = login ? login_shell_command(*shell_text, own_variable("SHELL")) : shell_command(*shell_text);
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

}  // namespace belljar::cli
