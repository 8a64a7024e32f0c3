// A long random sequence of file operations with a seed, as text: what each answered, and what the tree looks like at the end.
#pragma once

#include <string>

namespace belljar::test {

// Makes the tree that the sequence works on. `dir` is empty and owned by the user who will run it; called with all privileges there
// are.
void make_playground(const std::string& dir, unsigned uid, unsigned gid);
// Run inside. The same seed gives the same operations, whatever `dir` is called.
std::string play(const std::string& dir, unsigned seed, int operations);

}  // namespace belljar::test
