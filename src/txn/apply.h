// The steps of a commit, done and undone. Each can be told to be done from what lies where, so both may be cut off anywhere and
// begun again: the new file has an inode number that was noted, and what was there before is kept beside until the very end.
#pragma once

#include <string>
#include <vector>

#include "belljar/result.h"
#include "txn/stage.h"

namespace belljar::txn {

// `stage` and `workspace` are directories on one mount. Errors: kAborted, the host changed what a step expected;
// kResourceExhausted; the workspace is then half-way, and undo() is to follow.
Result<void> apply(int workspace, int stage, const std::vector<Op>& ops);

// As before, in reverse order. A file that somebody wrote to after we put it there is left as it is and named in the error.
Result<void> undo(int workspace, int stage, const std::vector<Op>& ops);

}  // namespace belljar::txn
