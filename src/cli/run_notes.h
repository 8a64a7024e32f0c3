// What `run` says on stderr of a sandbox, the same for every backend.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "policy/merge.h"

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
// And which of them name something that the policy hides and the host has, where no violation tells of it (of what no mask holds,
// of other backends). `cwd`: where the command starts.
void tell_hidden(const ExecResult& result, const std::vector<std::string>& words, const Filesystem& complete,
                 const policy::MergeContext& context, const std::string& cwd);
// And which hosts they name by URL, where there is no network: a name that is looked up is told to nobody.
void tell_no_network(const ExecResult& result, const std::vector<std::string>& words, const Policy& policy);
// And that nothing could be written, where mounts alone refuse and nobody is told.
void tell_read_only(const ExecResult& result, const Policy& policy, const Filesystem& complete, const std::string& workspace);
// And which allowed hosts the proxy could not reach. `told_all`: tell_enforcement() has spoken.
void tell_unreachable(const ExecResult& result, bool told_all);
// A proxy that the caller's environment names: no variable leads a sandbox's way out, for a shell or an editor may have set it from
// a file of the workspace. What to write instead, without its URL, which may hold a password. Empty: none is named.
std::string note_of_proxy_variable();
// --verbose: every clause, and that note where it matters.
void tell_enforcement(const EnforcementReport& report);

}  // namespace belljar::cli
