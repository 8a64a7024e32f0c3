// The program that runs, as a file: its neighbours stand beside it.
#pragma once

#include <string>

namespace belljar::cli {

// readlink(2) of /proc/self/exe; empty where that is hidden. A file that was replaced meanwhile ends in " (deleted)".
std::string own_program();

// The same for words that a user can copy: where it is hidden, the place that it is installed in.
std::string own_path();

// Becomes that file with the same words, and `component` behind the first of them. Comes back only when it cannot be started, with
// errno of execve(2).
void exec_program(const std::string& file, const char* component);

}  // namespace belljar::cli
