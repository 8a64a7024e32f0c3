#include "belljar/command.h"

#include <utility>

namespace belljar {

Command shell_command(std::string text) { return {.argv = {"/bin/sh", "-c", std::move(text)}}; }

Command login_shell_command(std::string text, std::string shell) {
  return {.argv = {shell.empty() ? "/bin/sh" : std::move(shell), "-lc", std::move(text)}};
}

}  // namespace belljar
