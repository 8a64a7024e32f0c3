// Does and undoes the steps of a commit. What lies where tells how far a step came, so both directions may be
// cut off anywhere and begun again: the inode number of the new file was noted, and the old file is kept in
// the stage until the very end.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "belljar/result.h"
#include "txn/stage.h"

namespace belljar::txn {

// Directories on one mount; `layers` where a step says so.
struct Roots {
  int workspace, stage, layers;
};

// Errors: kAborted, the host changed what a step expected;
// kResourceExhausted; the workspace is then half-way, and undo() is to follow.
Result<void> apply(const Roots& roots, const std::vector<Op>& ops);

// Directories that apply() and undo() open for a moment because their owner, who is not root, may not write to them; with the modes
// they have now.
std::map<std::string, std::uint32_t> closed_directories(int workspace, const std::vector<Op>& ops);
// Of those that were left open, where a commit was cut off in such a moment. The same `chmod u+wx` by hand since then looks no
// different.
void restore_modes(int workspace, const std::map<std::string, std::uint32_t>& modes) noexcept;

// As before, in reverse order. A file that somebody wrote to after we put it there is left as it is and named in the error.
Result<void> undo(const Roots& roots, const std::vector<Op>& ops);

}  // namespace belljar::txn
