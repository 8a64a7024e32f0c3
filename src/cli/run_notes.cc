#include "cli/run_notes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/format.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "cli/errors.h"

namespace belljar::cli {

std::vector<std::string> notes_of_accepted(const EnforcementReport& report, const Policy& policy) {
  std::vector<const EnforcementClause*> weak;
  for (const EnforcementClause& clause : report) {
    const bool accepted = std::ranges::find(policy.accept, clause.clause) != policy.accept.end() ||
                          (policy.allow_root_uid && clause.clause == "identity");
    if (accepted && clause.enforced != Enforced::kFull) weak.push_back(&clause);
  }
  std::vector<std::string> notes;
  while (!weak.empty()) {
    const EnforcementClause& first = *weak.front();
    const std::size_t times = std::erase_if(weak, [&](const EnforcementClause* one) {
      return one->clause == first.clause && one->enforced == first.enforced && one->detail == first.detail;
    });
    notes.push_back(format("{} is {}{}, as accepted: {}", first.clause, to_string(first.enforced),
                           times == 1 ? "" : format(" for each of {} rules", times), first.detail));
  }
  return notes;
}

void warn_of_accepted(const EnforcementReport& report, const Policy& policy) {
  for (const std::string& note : notes_of_accepted(report, policy)) print_note("warning: " + escaped(note));
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
