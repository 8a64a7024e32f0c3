// What `run` says on stderr of a sandbox, the same for every backend.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "belljar/exec_result.h"
#include "belljar/policy.h"

namespace belljar::cli {

// What is held below full because the policy accepts that. A clause that says the same of many rules (twelve globs) is one.
std::vector<std::string> notes_of_accepted(const EnforcementReport& report, const Policy& policy);
// At the start: these, a line each.
void warn_of_accepted(const EnforcementReport& report, const Policy& policy);
// At the end, of limits that the result's message does not name. `output_dropped`: bytes beyond the cap.
void tell_limits(const ExecResult& result, std::uint64_t output_dropped);
// At the end of a run that failed: which of its `words` (program and arguments, or shell text) name something of the host's /tmp or
// /var/tmp, in whose place the sandbox has directories of its own. `complete`: policy::Effective::complete.
void tell_private_tmp(const ExecResult& result, const std::vector<std::string>& words, const Filesystem& complete,
                      const std::string& workspace);
// And which allowed hosts the proxy could not reach. `told_all`: tell_enforcement() has spoken.
void tell_unreachable(const ExecResult& result, bool told_all);
// A proxy that the caller's environment names: no variable leads a sandbox's way out, for a shell or an editor may have set it from
// a file of the workspace. What to write instead, without its URL, which may hold a password. Empty: none is named.
std::string note_of_proxy_variable();
// --verbose: every clause, and that note where it matters.
void tell_enforcement(const EnforcementReport& report);

}  // namespace belljar::cli
