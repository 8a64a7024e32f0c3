// What the words of git(1) start and write: settings of `-c`, options that name a program, files that are made.
#pragma once

#include <vector>

#include "shell/script.h"
#include "shell/wrappers.h"

namespace belljar::shell {

std::vector<InnerCommand> started_by_git(const SimpleCommand& command);
// Where its output goes: `git archive -o FILE`, `git clone URL DIR`, `git config --system` ... What it does to its own work tree is
// not among them.
std::vector<Word> git_written_paths(const SimpleCommand& command);

}  // namespace belljar::shell
