// The shell text that runs inside, and how words get into it. POSIX sh, so that dash, bash and busybox read it; scripts.cc says
// what each one does.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "belljar/command.h"

namespace belljar::remote::shell {

// `text` as one word, whatever is in it (but NUL).
std::string word(std::string_view text);

struct Helper {
  const char* name;
  const char* text;
};
// The files that the private directory of a sandbox gets before its first command.
const std::vector<Helper>& helpers();

// Becomes `command` in `cwd`: sh reads it from a file beside the command's streams. `piped`: its stdin is a pipe of ours,
// `stdin_file` a file.
std::string go_script(const Command& command, const std::string& cwd, bool stdin_file, bool piped);

// The same text for a service that may mend what is no plain text on its way: in base64, and evaluated there.
std::string armoured(std::string script);

}  // namespace belljar::remote::shell
