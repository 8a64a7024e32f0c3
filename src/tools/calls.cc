// Verdicts about calls and answers to them, as they are kept: without secrets, in a trail and for `belljar
// review`.
//
// A secret that stands in the command usually stands in the reason and in the quotes as well, but there in
// running text, where no rule for command lines would find it. So the redactor learns the values from the
// command first, and the other texts are cleaned with what it learnt.
//
// A reviewer must know whether a repeated call is the same although its secret is not shown. Therefore the
// digest of the whole call is shown with it (for_review): the same call has the same digest.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/encoding.h"
#include "base/format.h"
#include "belljar/audit.h"
#include "belljar/call_record.h"
#include "belljar/error.h"
#include "belljar/redact.h"
#include "belljar/result.h"
#include "belljar/turn.h"
#include "tools/tool.h"

namespace belljar {
namespace {

using Json = nlohmann::ordered_json;

// Takes secrets out of texts about one call. What stands where a secret does in the command is one in its reason, too.
class CallRedactor {
 public:
  CallRedactor(const Redactor& redactor, Redactor::Values values) : redactor_(redactor), learned_(redactor), values_(values) {}

  // What act_text() made: a command, or the arguments as JSON.
  std::string act(const std::string& text) {
    Json arguments = Json::parse(text, nullptr, false);
    if (!arguments.is_object()) return redactor_.command(text, learned_, values_);
    each_string("", arguments);
    return redactor_(arguments.dump(2, ' ', false, Json::error_handler_t::replace));  // names of members, too
  }

  std::string words(const std::string& text) {
    Redactor ignored;
    return learned_.command(text, ignored, values_);
  }

 private:
  void each_string(std::string_view key, Json& json) {
    if (json.is_string()) {
      const auto& text = json.get_ref<const std::string&>();
      const bool shell = key == "command" || key == "stdin";
      json = shell ? redactor_.command(text, learned_, values_) : redactor_(text);
    } else if (json.is_object()) {
      for (auto& [name, value] : json.items()) each_string(name, value);
    } else if (json.is_array()) {
      for (Json& item : json) each_string(key, item);
    }
  }

  const Redactor& redactor_;
  Redactor learned_;
  Redactor::Values values_;
};

CallRecord without_secrets(CallRecord record, const Redactor& redactor, Redactor::Values values) {
  CallRedactor clean(redactor, values);
  record.call = clean.act(record.call);
  record.reason = clean.words(record.reason);
  for (Evidence& each : record.evidence) {
    each.text = clean.words(each.text);
    each.name = clean.words(each.name);
    each.quote = clean.words(each.quote);
  }
  return record;
}

// What the validator made of it, as fields of their own: quotes are for people.
void add_judgement(const CallRecord& record, AuditFields& fields) {
  constexpr std::size_t kMost = 8;
  if (!record.row.empty()) fields.text("row", record.row);
  std::vector<std::string> classes, strings, sources;
  const auto add = [](std::vector<std::string>& list, std::string text) {
    if (!text.empty() && list.size() < kMost && std::ranges::find(list, text) == list.end()) list.push_back(std::move(text));
  };
  for (const CallClass kind : record.classes) add(classes, std::string(to_string(kind)));
  for (const Evidence& each : record.evidence) {
    add(strings, each.text);
    add(sources, std::string(to_string(each.source)) + ": " + each.name);
  }
  if (!classes.empty()) fields.texts("classes", classes);
  if (!strings.empty()) fields.texts("strings", strings);
  if (!sources.empty()) fields.texts("sources", sources);
}

}  // namespace

std::string_view to_string(CallOutcome outcome) noexcept {
  constexpr std::string_view kNames[] = {"run", "ask", "refuse", "block", "invalid"};
  return kNames[static_cast<std::size_t>(outcome)];
}

CallRecord for_trail(CallRecord record, const Redactor& redactor) {
  return without_secrets(std::move(record), redactor, Redactor::Values::kAny);
}

CallRecord for_review(CallRecord record, const Redactor& redactor) {
  const std::string whole = record.call;
  record = without_secrets(std::move(record), redactor, Redactor::Values::kWords);
  if (record.call.find("[redacted:") != std::string::npos && record.call != whole)
    record.call += "\n[without its secrets; SHA-256 of the whole: " + to_hex(sha256(whole)) + "]";
  return record;
}

CallRecorder record_calls(std::shared_ptr<AuditTrail> trail, std::shared_ptr<const Redactor> redactor, std::string sandbox) {
  if (!redactor) redactor = std::make_shared<const Redactor>();
  return [trail = std::move(trail), redactor = std::move(redactor),
          sandbox = std::move(sandbox)](const CallRecord& raw) -> Result<std::int64_t> {
    if (trail == nullptr)
      return Error(Code::kInvalidArgument, "cannot record a call").reason("record_calls was given no trail").next("give it one");
    const CallRecord record = for_trail(raw, *redactor);
    const bool answer = !record.answer.empty();
    AuditFields fields;
    fields.text("sandbox", sandbox).text("tool", record.tool).text("call", record.call);
    if (answer) fields.number("verdict", record.number).text("answer", record.answer);
    else fields.text("verdict", to_string(record.verdict));
    fields.text("by", record.by).text("reason", record.reason);
    constexpr std::size_t kMostQuotes = 3;
    std::vector<std::string> quotes;
    for (std::size_t i = 0; i < std::min(record.evidence.size(), kMostQuotes); ++i)
      quotes.push_back(record.evidence[i].name + ": " + record.evidence[i].quote);
    if (!quotes.empty()) fields.texts("evidence", quotes);
    if (!answer) add_judgement(record, fields);
    BELLJAR_CHECK(trail->reserve());
    return static_cast<std::int64_t>(BELLJAR_TRY(trail->append(answer ? "call.answer" : "call.verdict", fields)));
  };
}

}  // namespace belljar
