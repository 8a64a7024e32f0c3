#include "cli/run_notes.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/format.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "cli/errors.h"

namespace belljar::cli {

void warn_of_accepted(const EnforcementReport& report, const Policy& policy) {
  for (const EnforcementClause& clause : report) {
    const bool accepted = std::ranges::find(policy.accept, clause.clause) != policy.accept.end() ||
                          (policy.allow_root_uid && clause.clause == "identity");
    if (accepted && clause.enforced != Enforced::kFull)
      print_note(format("warning: {} is {}, as accepted: {}", clause.clause, to_string(clause.enforced), escaped(clause.detail)));
  }
}

void tell_limits(const ExecResult& result, std::uint64_t output_dropped) {
  for (const std::string& limit : result.limits_hit) {
    // Whoever reads the output cannot tell that it was cut, whatever the program thinks of itself.
    if (limit == "output" && output_dropped > 0 && result.reason != Reason::kOutput)
      print_note(format("the limit `output` was reached: {} {} of output dropped", output_dropped,
                        output_dropped == 1 ? "byte" : "bytes"));
    else if (result.exit_code != 0 && result.message.empty()) print_note(format("the limit `{}` was reached", limit));
  }
}

void tell_enforcement(const EnforcementReport& report) {
  for (const EnforcementClause& clause : report)
    print_note(format("{}: {} ({}{}{}){}{}", clause.clause, to_string(clause.enforced), clause.asked,
                      clause.mechanism.empty() ? "" : "; ", clause.mechanism, clause.detail.empty() ? "" : ": ",
                      escaped(clause.detail)));
}

}  // namespace belljar::cli
