// One call of a model: judged, asked about, made, and shown to the model.
//
// The order of the judging is fixed: the caller's own hook, provenance (Turn), a second model if there is one
// (guardian), what the rules permit, and only then a person. Each can only make the outcome stricter than
// those before it. Reading is put to the guardian only if something is already suspicious.
//
// Each verdict is recorded before anything is done, and an answer before what it allows is done. If the
// record cannot be written, the call is refused: without a trail nothing happens.
//
// A result enters the Turn in its raw form, without the words that are ours (foreign_text), and is shown to
// the model between delimiters with a random name (wrap_result). The name is random so that content cannot
// contain the end of its own delimiters.
//
// Answers of middleware that are trusted (a to-do list, say) are shown as they are: they are made of the
// model's own words.
#include <cstdint>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/json.h"
#include "agent/state.h"
#include "base/format.h"
#include "base/random.h"
#include "belljar/agent.h"
#include "belljar/agent_model.h"
#include "belljar/call_record.h"
#include "belljar/cancel.h"
#include "belljar/content_policy.h"
#include "belljar/error.h"
#include "belljar/guardian.h"
#include "belljar/result.h"
#include "belljar/tools.h"
#include "belljar/turn.h"
#include "detect/detect.h"
#include "guard/call.h"

namespace belljar::agent {
namespace {

AgentOpinion default_opinion(const ToolRequest& request) {
  if (request.kind == ToolKind::kRead) return {.say = AgentSay::kRun};
  return {.say = AgentSay::kAsk, .reason = "nothing says that it may run unasked"};
}

ToolVerdict unrecorded(const Error& error) {
  return {.allowed = false,
          .reason = "what is decided about it cannot be recorded, and without a record nothing is done: " + error.line(),
          .next = "tell the user"};
}

std::string exactly(const ToolRequest& request) { return request.tool + '\0' + request.arguments; }

}  // namespace

Result<std::int64_t> State::record(const CallRecord& step) const {
  return options.record ? options.record(step) : Result<std::int64_t>(-1);
}

// An answer is recorded before what it allows is done.
ToolVerdict State::ask(const ToolRequest& request, CallRecord step) {
  const auto answered = [&](std::string_view answer, std::string by, ToolVerdict verdict) {
    step.answer = answer;
    step.by = std::move(by);
    const auto told = record(step);
    return told ? std::move(verdict) : unrecorded(told.error());
  };
  if (approved.contains(exactly(request))) return answered("session", "approval", {});
  if (!options.ask) {
    ++unasked;
    tell({.kind = AgentEvent::Kind::kNote,
          .agent = speaking,
          .text = format("{} was not allowed: {}; there is nobody to ask", request.tool, step.reason),
          .failed = true});
    return answered("deny", "nobody",
                    {.allowed = false,
                     .reason = step.reason + "; that is to be asked, and there is nobody to ask",
                     .next = "do it another way, or tell the user"});
  }
  switch (options.ask({.request = request, .reason = step.reason, .evidence = step.evidence})) {
    case AgentAnswer::kSession:
      approved.insert(exactly(request));
      return answered("session", "person", {});
    case AgentAnswer::kOnce:
      return answered("once", "person", {});
    case AgentAnswer::kNo:
      break;
  }
  return answered("deny", "person",
                  {.allowed = false,
                   .reason = "the user said no",
                   .next = "do not try it again; do it another way, or ask the user what is wanted"});
}

ToolVerdict State::judge(const ToolRequest& request) {
  judged = true;
  const auto step = [&](CallOutcome verdict, std::string by, std::string reason) {
    return CallRecord{
        .tool = request.tool, .call = act_text(request), .verdict = verdict, .by = std::move(by), .reason = std::move(reason)};
  };
  const auto refused = [&](CallRecord made, std::string_view how, std::string next) {
    tell({.kind = AgentEvent::Kind::kNote,
          .agent = speaking,
          .text = format("{} {}: {}", request.tool, how, made.reason),
          .failed = true});
    if (const auto told = record(made); !told) return unrecorded(told.error());
    return ToolVerdict{.allowed = false, .reason = std::move(made.reason), .next = std::move(next)};
  };
  if (options.tools.hook) {
    if (ToolVerdict verdict = options.tools.hook(request); !verdict.allowed) {
      const auto told = record(step(CallOutcome::kRefuse, "hook", verdict.reason));
      return told ? std::move(verdict) : unrecorded(told.error());
    }
  }
  Judgement judgement;
  AgentOpinion opinion{.say = AgentSay::kRun};
  if (request.kind != ToolKind::kControl) {
    const ProposedCall proposed{.tool = request.tool, .arguments = request.arguments, .command = request.command};
    judgement = turn.judge(proposed);
    if (options.guardian != nullptr && (request.kind != ToolKind::kRead || judgement.advice != Advice::kAllow))
      judgement = guarded(*options.guardian, {.user = user, .call = proposed, .judgement = judgement});
    if (judgement.advice == Advice::kBlock) {
      CallRecord blocked = step(CallOutcome::kBlock, "validator", judgement.reason);
      blocked.evidence = judgement.evidence;
      blocked.row = judgement.row;
      blocked.classes = judgement.classes;
      return refused(std::move(blocked), "was blocked",
                     "this follows content that nobody vouches for: tell the user, and go on with the task");
    }
    opinion = options.permit ? options.permit(request) : default_opinion(request);
  }
  if (opinion.say == AgentSay::kRefuse)
    return refused(step(CallOutcome::kRefuse, "rules", opinion.reason), "was refused", std::move(opinion.next));
  const bool suspicious = judgement.advice == Advice::kAsk;
  const bool asks = suspicious || opinion.say == AgentSay::kAsk;
  CallRecord made = step(asks ? CallOutcome::kAsk : CallOutcome::kRun, suspicious ? "validator" : "rules",
                         suspicious ? judgement.reason : opinion.reason);
  if (suspicious) made.evidence = judgement.evidence;
  made.row = judgement.row;
  made.classes = judgement.classes;
  const auto number = record(made);
  if (!number) return unrecorded(number.error());
  if (!asks) return {};
  made.number = *number;
  return ask(request, std::move(made));
}

// Which content a result is: a file of the workspace, by its path (read by a tool, or shown by a command), what came over the
// network, or whatever else a command said.
Entered State::entered_of(const ToolUse& call, std::string text) {
  const std::string path = text_of(arguments_of(call), "path");
  const bool file = call.name == "read_file" || call.name == "readFile";
  if (file && !path.empty()) return {.source = TextSource::kWorkspace, .name = path, .text = std::move(text)};
  const bool names = call.name == "list" || call.name == "glob" || call.name == "grep" || call.name == "listFiles";
  if (names) return {.source = TextSource::kWorkspace, .name = call.name, .text = std::move(text)};
  const guard::Call parts = guard::read_call({.tool = call.name, .arguments = call.arguments}, reader);
  if (guard::talks(parts)) return {.source = TextSource::kNetwork, .name = call.name, .text = std::move(text)};
  if (std::string shown = guard::name_of_shown(parts); !shown.empty())
    return {.source = TextSource::kWorkspace, .name = std::move(shown), .text = std::move(text)};
  return {.source = TextSource::kTool, .name = call.name, .text = std::move(text)};
}

// Keeps it, and says how it can be seen.
std::string State::keep(const Withheld& passage) {
  const bool can = gate.reveals() && options.tools.texts == ToolTexts::kBelljar;
  const std::string id = can ? withheld.keep(passage) : "";
  if (id.empty()) return {};
  return format("{} with reveal=\"{}\" shows them as data{}", kRevealer, id,
                gate.reveal_rule() == RevealRule::kAsk ? ", if the user allows it" : "");
}

// The user is asked, whatever mode: text beside the passage may have told the model to ask for it.
ToolResult State::show_withheld(const std::string& id, const CancelToken& cancel) {
  auto passage = withheld.find(id);
  if (!passage) return {.text = "Error: " + passage.error().line() + "\n", .failed = true, .own_from = 0};
  const std::size_t bytes = passage->text.size() + passage->left_out;
  const Json act{{"reveal", id}, {"of", passage->name}, {"source", to_string(passage->source)}, {"bytes", bytes}};
  const ToolRequest request{.tool = std::string(kRevealer), .kind = ToolKind::kRead, .arguments = dump(act), .cancel = cancel};
  const Judgement judgement = gate.reveal_rule() == RevealRule::kAllow ? Judgement{} : judge_reveal(*passage);
  const bool asks = judgement.advice != Advice::kAllow;
  CallRecord made{.tool = request.tool,
                  .call = act_text(request),
                  .verdict = asks ? CallOutcome::kAsk : CallOutcome::kRun,
                  .by = "validator",
                  .reason = judgement.reason,
                  .evidence = judgement.evidence};
  const auto number = record(made);
  ToolVerdict verdict = number ? ToolVerdict{} : unrecorded(number.error());
  if (number && asks) {
    made.number = *number;
    verdict = ask(request, std::move(made));
  }
  was_refused = !verdict.allowed;
  if (was_refused)
    return {.text = format("Error: the passage is not shown: {}\nnext: {}\n", verdict.reason, verdict.next),
            .failed = true,
            .own_from = 0};
  ToolResult result{.text = gate.reveal(*passage)};
  revealed = *std::move(passage);
  return result;
}

std::string State::shown(const ToolUse& call, const Entered& entered, std::optional<std::size_t> own_from) {
  const ContentShown shown =
      own_from ? gate.apply_to_result(entered, *own_from, [this](const Withheld& passage) { return keep(passage); })
               : ContentShown{.text = entered.text};
  for (const std::string& note : shown.notes)
    tell({.kind = AgentEvent::Kind::kNote, .agent = speaking, .text = format("{}: {}", call.name, note)});
  const std::string nonce = random_hex(12);
  if (nonce.empty()) return "the result cannot be shown: this machine gives no random numbers";
  return detect::wrap_result({.tool = call.name, .source = static_cast<detect::Source>(entered.source), .content = shown.text},
                             nonce);
}

MiddlewareAnswer State::make_call(AgentRun& run, const ToolUse& call) {
  const auto unmade = [&](CallOutcome verdict, std::string by, const ToolResult& result) {
    return record({.tool = call.name, .call = call.arguments, .verdict = verdict, .by = std::move(by), .reason = result.text});
  };
  for (const auto& middleware : options.middleware) {
    if (auto instead = middleware->before_tool(run, call)) {
      (void)unmade(CallOutcome::kRefuse, "middleware", *instead);  // nothing is done
      return {.result = std::move(*instead)};
    }
  }
  if (AgentMiddleware* owner = owner_of(call.name)) {
    if (const auto told = unmade(CallOutcome::kRun, "middleware", {}); !told)
      return {.result = {.text = unrecorded(told.error()).reason, .failed = true}};
    return owner->call(run, call);
  }
  if (call.name == kRevealer && gate.reveals() && options.tools.texts == ToolTexts::kBelljar) {
    if (const std::string id = text_of(arguments_of(call), "reveal"); !id.empty()) return {.result = show_withheld(id, run.cancel)};
  }
  judged = false;
  ToolResult result = toolbox.call(call.name, call.arguments, {.cancel = run.cancel});
  if (!judged && result.failed) (void)unmade(CallOutcome::kInvalid, "tools", result);  // nothing was done
  return {.result = std::move(result)};
}

ChatMessage State::answer(AgentRun& run, const ToolUse& call) {
  was_refused = false;
  MiddlewareAnswer answer = make_call(run, call);
  // Before anything else: a sub-agent's calls come in between.
  const std::optional<Withheld> seen = std::exchange(revealed, std::nullopt);
  const bool as_it_is = seen || std::exchange(was_refused, false);  // it was let through, or the words are ours
  for (const auto& middleware : std::views::reverse(options.middleware)) middleware->after_tool(run, call, answer.result);
  const ToolResult& result = answer.result;
  run.tell({.kind = AgentEvent::Kind::kToolEnds,
            .text = result.text,
            .call = call,
            .failed = result.failed,
            .use = use,
            .turn = run.turn});
  ChatMessage message{.role = ChatRole::kTool, .call_id = call.id, .tool = call.name, .failed = result.failed};
  // The raw text: what was taken out for the model is still where the call's strings may have come from.
  Entered entered = entered_of(call, result.text);
  if (seen) entered.source = seen->source, entered.name = seen->name;
  message.text = answer.trusted ? result.text : shown(call, entered, as_it_is ? std::nullopt : std::optional(result.own_from));
  entered.text = seen ? seen->text : foreign_text(result, call.arguments);
  if (answer.trusted) entered.trust = TextTrust::kTrusted;
  turn.entered(std::move(entered));
  return message;
}

}  // namespace belljar::agent
