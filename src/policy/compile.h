// A policy as the sandboxes of other systems take it, for `belljar policy compile`: text alone, nothing is started. What the other
// system cannot hold is a gap that is said, and never left out quietly; where holding it closely is not possible, the text refuses
// more.
//
// Seatbelt (macOS, sandbox-exec(1)): a profile of (allow ...) and (deny ...), of which the last that matches counts. Windows: a
// restricted token (CreateRestrictedToken), a job, entries of access-control lists and rules of the firewall, as JSON for a
// launcher.
//
// Paths are those of the policy: made for a machine whose home and workspace have the given names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "belljar/result.h"
#include "policy/merge.h"

namespace belljar::policy {

struct CompileGap {
  std::string clause;  // as in an enforcement report
  std::string why;
  bool operator==(const CompileGap&) const = default;
};

struct Compiled {
  std::string text;
  std::vector<CompileGap> gaps;
};

// Where the private temporary directory of a run is: a parameter of the profile (sandbox-exec -D NAME=PATH), TMPDIR of the command.
inline constexpr std::string_view kSeatbeltTmp = "BELLJAR_TMP";

// Errors: kInvalidArgument, a mode that leaves the sandbox to somebody else, or a path that the other system has no word for;
// kFailedPrecondition, a clause that `require` names has a gap.
Result<Compiled> compile_seatbelt(const Effective& effective, const MergeContext& context);
Result<Compiled> compile_windows(const Effective& effective, const MergeContext& context);

}  // namespace belljar::policy
