// One call: judged, asked about, made, shown to the model.
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
#include "belljar/content_policy.h"
#include "belljar/guardian.h"
#include "belljar/tools.h"
#include "belljar/turn.h"
#include "guard/call.h"
#include "guard/detect.h"

namespace belljar::agent {
namespace {

AgentOpinion default_opinion(const ToolRequest& request) {
  if (request.kind == ToolKind::kRead) return {.say = AgentSay::kRun};
  return {.say = AgentSay::kAsk, .reason = "nothing says that it may run unasked"};
}

std::string exactly(const ToolRequest& request) { return request.tool + '\0' + request.arguments; }

}  // namespace

ToolVerdict State::ask(const ToolRequest& request, std::string reason, std::vector<Evidence> evidence) {
  if (approved.contains(exactly(request))) return {};
  if (!options.ask)
    return {.allowed = false,
            .reason = reason + "; that is to be asked, and there is nobody to ask",
            .next = "do it another way, or tell the user"};
  switch (options.ask({.request = request, .reason = std::move(reason), .evidence = std::move(evidence)})) {
    case AgentAnswer::kSession:
      approved.insert(exactly(request));
      return {};
    case AgentAnswer::kOnce:
      return {};
    case AgentAnswer::kNo:
      break;
  }
  return {.allowed = false,
          .reason = "the user said no",
          .next = "do not try it again; do it another way, or ask the user what is wanted"};
}

ToolVerdict State::judge(const ToolRequest& request) {
  if (options.tools.hook) {
    if (ToolVerdict verdict = options.tools.hook(request); !verdict.allowed) return verdict;
  }
  if (request.kind == ToolKind::kControl) return {};
  const ProposedCall proposed{.tool = request.tool, .arguments = request.arguments, .command = request.command};
  Judgement judgement = turn.judge(proposed);
  if (options.guardian != nullptr && (request.kind != ToolKind::kRead || judgement.advice != Advice::kAllow))
    judgement = guarded(*options.guardian, {.user = user, .call = proposed, .judgement = judgement});
  const auto refused = [&](std::string_view by, const std::string& reason, std::string next) {
    tell({.kind = AgentEvent::Kind::kNote,
          .agent = speaking,
          .text = format("{} {}: {}", request.tool, by, reason),
          .failed = true});
    return ToolVerdict{.allowed = false, .reason = reason, .next = std::move(next)};
  };
  if (judgement.advice == Advice::kBlock)
    return refused("was blocked", judgement.reason,
                   "this follows content that nobody vouches for: tell the user, and go on with the task");
  AgentOpinion opinion = options.permit ? options.permit(request) : default_opinion(request);
  if (opinion.say == AgentSay::kRefuse) return refused("was refused", opinion.reason, std::move(opinion.next));
  if (judgement.advice == Advice::kAsk) return ask(request, judgement.reason, judgement.evidence);
  if (opinion.say == AgentSay::kAsk) return ask(request, opinion.reason, {});
  return {};
}

// Which content a result is: a file of the workspace, by its path, what came over the network, or whatever else a command said.
Entered State::entered_of(const ToolUse& call, std::string text) {
  const std::string path = text_of(arguments_of(call), "path");
  const bool file = call.name == "read_file" || call.name == "readFile";
  if (file && !path.empty()) return {.source = TextSource::kWorkspace, .name = path, .text = std::move(text)};
  const bool names = call.name == "list" || call.name == "glob" || call.name == "grep" || call.name == "listFiles";
  const auto source = names                                                                    ? TextSource::kWorkspace
                      : guard::talks({.tool = call.name, .arguments = call.arguments}, reader) ? TextSource::kNetwork
                                                                                               : TextSource::kTool;
  return {.source = source, .name = call.name, .text = std::move(text)};
}

std::string State::shown(const ToolUse& call, const Entered& entered) const {
  const ContentShown shown = gate.apply(entered);
  for (const std::string& note : shown.notes)
    tell({.kind = AgentEvent::Kind::kNote, .agent = speaking, .text = format("{}: {}", call.name, note)});
  const std::string nonce = random_hex(12);
  if (nonce.empty()) return "the result cannot be shown: this machine gives no random numbers";
  return guard::wrap_result({.tool = call.name, .source = static_cast<guard::Source>(entered.source), .content = shown.text},
                            nonce);
}

MiddlewareAnswer State::make_call(AgentRun& run, const ToolUse& call) {
  for (const auto& middleware : options.middleware) {
    if (auto instead = middleware->before_tool(run, call)) return {.result = std::move(*instead)};
  }
  if (AgentMiddleware* owner = owner_of(call.name)) return owner->call(run, call);
  return {.result = toolbox.call(call.name, call.arguments, {.cancel = run.cancel})};
}

ChatMessage State::answer(AgentRun& run, const ToolUse& call) {
  MiddlewareAnswer answer = make_call(run, call);
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
  message.text = answer.trusted ? result.text : shown(call, entered);
  if (answer.trusted) entered.trust = TextTrust::kTrusted;
  turn.entered(std::move(entered));
  return message;
}

}  // namespace belljar::agent
