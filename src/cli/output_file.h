// A file that an option names and we write: --report, learn --output.
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

}  // namespace belljar::cli
