#include "policy/check_command.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/format.h"
#include "belljar/command.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::policy {

using std::chrono::milliseconds;

// argv and environment travel as NUL-terminated strings: a NUL inside would begin another argument.
Result<void> check_command(const Command& command) {
  const auto refused = [](std::string_view part, std::string_view text) {
    return Error(Code::kInvalidArgument, format("cannot start a command with the {} {}", part, quoted(text.substr(0, 200))))
        .reason("it holds a NUL byte");
  };
  if (command.argv.empty() || command.argv[0].empty())
    return Error(Code::kInvalidArgument, "there is no command to run").next("give a program, or shell text");
  for (const std::string& argument : command.argv) {
    if (argument.find('\0') != std::string::npos) return refused("argument", argument);
  }
  if (command.cwd.find('\0') != std::string::npos) return refused("working directory", command.cwd);
  for (const auto& [name, text] : command.env) {
    if (name.empty() || name.find('=') != std::string::npos)
      return Error(Code::kInvalidArgument, format("cannot set the variable {}", quoted(name)))
          .reason("a name is not empty and holds no `=`");
    if (name.find('\0') != std::string::npos || text.find('\0') != std::string::npos) return refused("variable", name);
  }
  return {};
}

Result<void> check_timeout(std::optional<milliseconds> timeout) {
  if (!timeout || *timeout > milliseconds(0)) return {};
  return Error(Code::kInvalidArgument, format("cannot use a timeout of {} ms", timeout->count()))
      .next("give a positive one, or none");
}

}  // namespace belljar::policy
