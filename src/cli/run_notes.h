// The notes of `run` on stderr, the same for every backend.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "cli/load.h"

namespace belljar::cli {

// Notes on clauses that are enforced less than fully because the policy accepts that. A clause that says the
// same of many rules (twelve globs) is one note.
std::vector<std::string> notes_of_accepted(const EnforcementReport& report, const Policy& policy);
// At the start: these, a line each.
void warn_of_accepted(const EnforcementReport& report, const Policy& policy);
// At the end, of limits that the result's message does not name. `output_dropped`: bytes beyond the cap.
// Whether people are told why a command ended that did not exit: not the plain "killed by SIGKILL", which its exit code says.
bool is_worth_a_note(std::string_view reason, std::string_view message) noexcept;
void tell_limits(const ExecResult& result, std::uint64_t output_dropped);
// At the end of a run that failed: of what it may have failed, where nothing else told it. `words`: program and arguments, or shell
// text; `cwd`: where the command starts; `told_all`: tell_enforcement() speaks, too.
void tell_why(const ExecResult& result, const std::vector<std::string>& words, const LoadedPolicy& loaded, const std::string& cwd,
              bool told_all);
// " (read `/home/me/.ssh`)", where one thing alone was refused, or one call killed its caller; else "".
std::string name_refused(const ExecResult& result);
// A proxy that the caller's environment names: no variable leads a sandbox's way out, for a shell or an editor may have set it from
// a file of the workspace. What to write instead, without its URL, which may hold a password. Empty: none is named.
std::string note_of_proxy_variable();
// --verbose: every clause, and that note where it matters.
void tell_enforcement(const EnforcementReport& report);

}  // namespace belljar::cli
