// The programs that git(1) starts and the files that it writes, by its words: settings of `-c`, options that
// name a program, files that are made.
#pragma once

#include <vector>

#include "shell/script.h"
#include "shell/wrappers.h"

namespace belljar::shell {

std::vector<InnerCommand> started_by_git(const SimpleCommand& command);
// The files that git writes for its caller: `git archive -o FILE`, `git clone URL DIR`, `git config --system`
// ... Changes to its own work tree are not among them.
std::vector<Word> git_written_paths(const SimpleCommand& command);

}  // namespace belljar::shell
