// The paths of a sandbox elsewhere, judged as text: what links inside lead to is the sandbox's own affair. And what its coreutils
// complain of, as the errors of belljar/sandbox.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "belljar/error.h"
#include "belljar/files.h"
#include "belljar/result.h"

namespace belljar::remote {

// Absolute and normal, for a `path` relative to the workspace or below it. Errors: kInvalidArgument, "path escapes workspace: ...",
// a NUL, too long.
Result<std::string> below(const std::string& workspace, const std::string& path);
// And not the workspace itself.
Result<std::string> named_below(const std::string& workspace, const std::string& path);
// The working directory of a command; empty: the workspace. Errors: kInvalidArgument, "workdir escapes workspace: ...". Nobody
// looked whether it is there.
Result<std::string> cwd_below(const std::string& workspace, const std::string& cwd);
std::string parent_of(const std::string& path);

// `config.workspace`, or the backend's own. Errors: kInvalidArgument, it is not absolute.
Result<std::string> workspace_elsewhere(const std::string& asked, std::string_view usual);

// Errors: kInvalidArgument: more than permission bits.
Result<void> check_mode(std::optional<unsigned> mode);
Error wrong_kind(std::string_view doing, const std::string& path, FileType type);
// "cat: x: Permission denied"
Error complaint_of(const std::string& err, std::string_view doing, const std::string& path);

}  // namespace belljar::remote
