// Verdicts about calls and answers to them, as records of a trail.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belljar/audit.h"
#include "belljar/call_record.h"
#include "belljar/error.h"
#include "belljar/redact.h"
#include "belljar/result.h"
#include "belljar/turn.h"

namespace belljar {

std::string_view to_string(CallOutcome outcome) noexcept {
  constexpr std::string_view kNames[] = {"run", "ask", "refuse", "block", "invalid"};
  return kNames[static_cast<std::size_t>(outcome)];
}

CallRecorder record_calls(std::shared_ptr<AuditTrail> trail, std::shared_ptr<const Redactor> redactor, std::string sandbox) {
  if (!redactor) redactor = std::make_shared<const Redactor>();
  return [trail = std::move(trail), redactor = std::move(redactor),
          sandbox = std::move(sandbox)](const CallRecord& record) -> Result<std::int64_t> {
    if (trail == nullptr)
      return Error(Code::kInvalidArgument, "cannot record a call").reason("record_calls was given no trail").next("give it one");
    const bool answer = !record.answer.empty();
    AuditFields fields;
    fields.text("sandbox", sandbox).text("tool", record.tool).text("call", (*redactor)(record.call));
    if (answer) fields.number("verdict", record.number).text("answer", record.answer);
    else fields.text("verdict", to_string(record.verdict));
    fields.text("by", record.by).text("reason", (*redactor)(record.reason));
    constexpr std::size_t kMostQuotes = 3;
    std::vector<std::string> quotes;
    for (std::size_t i = 0; i < std::min(record.evidence.size(), kMostQuotes); ++i)
      quotes.push_back((*redactor)(record.evidence[i].name + ": " + record.evidence[i].quote));
    if (!quotes.empty()) fields.texts("evidence", quotes);
    BELLJAR_CHECK(trail->reserve());
    return static_cast<std::int64_t>(BELLJAR_TRY(trail->append(answer ? "call.answer" : "call.verdict", fields)));
  };
}

}  // namespace belljar
