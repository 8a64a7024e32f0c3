// Files that options name and we write (--report, learn --output), and a line written whole.
#pragma once

#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "belljar/result.h"
#include "cli/load.h"

namespace belljar::cli {

// Makes or empties `path` for writing. A link that an earlier command left where commands can write, at the file's name or on the
// way to it, must not choose what we overwrite: below the workspace and other writable roots of the policy no link is followed,
// elsewhere none at the file's own name. /dev/fd/N is links by nature and followed. Errors: kInvalidArgument, "cannot create WHAT
// `path`".
Result<UniqueFd> create_output(const std::string& path, std::string_view what, std::string_view option, const LoadedPolicy& loaded);
// The report of a start that `refused` ended before the policy was known, so that no earlier one stands for it. Follows no link at
// all, /dev/fd/N apart. Not valid without a path, or where it cannot be made, which is told unless that is what `refused` says.
UniqueFd create_report_of_refusal(const std::string& path, const Error& refused);
// Checks that `path` still leads to the file `fd`. A command that could write there may have written to the
// report, or put another file in its place. To be called when nothing of the command runs any more.
Result<void> check_report(int fd, const std::string& path);
// `what` it is, for the error.
Result<void> write_line(int fd, std::string text, std::string_view what);

}  // namespace belljar::cli
