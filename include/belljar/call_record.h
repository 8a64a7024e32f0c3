// Records of the calls that a model proposes: each verdict before anything is done, and each answer of the
// person or client that was asked.
//
//   auto trail = std::make_shared<AuditTrail>(BELLJAR_TRY(AuditTrail::open(path)));
//   Agent agent({.model = model, .sandbox = sandbox, .record = record_calls(trail)});
//
// The trail then has refused calls, too, which no sandbox ever sees. with_audit() records the calls that were
// made.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/audit.h"
#include "belljar/redact.h"
#include "belljar/result.h"
#include "belljar/turn.h"

namespace belljar {

// kInvalid: it could not be judged, since there is no such tool or its arguments do not fit; nothing is done.
enum class CallOutcome { kRun, kAsk, kRefuse, kBlock, kInvalid };
std::string_view to_string(CallOutcome outcome) noexcept;

struct CallRecord {
  std::string tool, call;                   // `call`: what a person is shown of it (act_text)
  CallOutcome verdict = CallOutcome::kRun;  // kAsk: an answer follows
  std::string answer;                       // of an answer: "once", "session", "always", "deny"; empty: this is a verdict
  std::string by;                           // who said it, one word: "rules", "validator", "client", "person", "nobody" ...
  std::string reason;                       // may quote hostile text: escape before showing
  std::vector<Evidence> evidence;           // of a verdict
  std::string row;                          // of a verdict: the row of the table that decided (Judgement::row); empty: none did
  std::vector<CallClass> classes;           // of a verdict: what the call would do, as the validator sees it
  std::int64_t number = -1;                 // of an answer: what recording its verdict returned
};

// Called from the thread of the call, before anything is done. An Error refuses the call: no record, no work.
using CallRecorder = std::function<Result<std::int64_t>(const CallRecord&)>;

// The record without secrets, as it may be kept: the values that `redactor` knows are removed from call,
// reason and evidence, and so are values that stand where a secret does in a command. Each string of a call
// in JSON is searched by itself. A quote that was cut inside of a secret keeps that piece.
CallRecord for_trail(CallRecord record, const Redactor& redactor);
// The same for a person who decides by it: of values that the redactor does not know, nothing is removed that
// could be shell code (Redactor::Values::kWords). A call from which something was removed ends in a digest of
// the whole, so that an answer holds for that call alone.
CallRecord for_review(CallRecord record, const Redactor& redactor);

// "call.verdict" and "call.answer" of a trail, as for_trail(). `sandbox`: its id.
CallRecorder record_calls(std::shared_ptr<AuditTrail> trail, std::shared_ptr<const Redactor> redactor = nullptr,
                          std::string sandbox = {});

}  // namespace belljar
