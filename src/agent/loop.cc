// The loop of an agent: a question to the model, the calls in its answer, their results, the next question.
//
// A run goes on until the model answers without a call. Before each question it is checked whether it may:
// cancelled, stopped by a middleware, too many answers, no tokens left. The check is made twice, because a
// middleware in before_model may use tokens itself (a summary asks the model).
//
// The conversation has to stay well-formed at every moment, since services refuse one in which a call has no
// result. So when a run is cancelled in the middle of an answer with several calls, each of the remaining
// calls still gets a result that says so. For the same reason each call gets an id of its own (add_reply):
// some servers leave it out or give the same one twice.
//
// The budget covers the agent and its sub-agents together (State), while the result of a run tells only its
// own part. settle() moves the difference from the one to the other.
//
// Middleware is called in order before something happens and in reverse order afterwards, like nested
// functions.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/state.h"
#include "base/format.h"
#include "belljar/agent.h"
#include "belljar/agent_model.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::agent {
namespace {

// For endpoints that do not say: four bytes a token.
TokenUse estimated(const ModelRequest& request, const ModelReply& reply) {
  const auto size = [](const ChatMessage& message) {
    std::size_t bytes = message.text.size();
    for (const ToolUse& call : message.calls) bytes += call.name.size() + call.arguments.size();
    return bytes;
  };
  std::uint64_t input = request.system.size();
  for (const ChatMessage& message : request.messages) input += size(message);
  return {input / 4 + 1, size(reply.message) / 4 + 1};
}

class Loop {
 public:
  Loop(State& state, AgentRun& run, bool may_delegate) : state_(state), run_(run), may_delegate_(may_delegate) {}
  AgentResult go();

 private:
  std::optional<AgentResult> why_not_on() const;
  Result<ModelReply> ask_model();
  void add_reply(ModelReply& reply);
  void answer_calls(const std::vector<ToolUse>& calls);
  AgentResult ended(AgentEnd end, std::string reason) const;
  AgentResult said(const ModelReply& reply) const;
  AgentResult failed(Error error) const;
  // A middleware may have asked the model, too.
  void settle() {
    state_.use.input += run_.use.input - counted_.input;
    state_.use.output += run_.use.output - counted_.output;
    counted_ = run_.use;
  }
  void tell(AgentEvent event) const {
    event.turn = run_.turn;
    event.use = state_.use;
    run_.tell(std::move(event));
  }

  State& state_;
  AgentRun& run_;
  const bool may_delegate_;
  TokenUse counted_;
};

AgentResult Loop::ended(AgentEnd end, std::string reason) const {
  return {.end = end, .reason = std::move(reason), .use = run_.use, .turns = run_.turn};
}

std::optional<AgentResult> Loop::why_not_on() const {
  const AgentOptions& options = state_.options;
  if (run_.cancel.cancelled()) return ended(AgentEnd::kCancelled, "it was cancelled");
  if (run_.stop) return ended(*run_.stop, run_.stop_reason);
  if (run_.turn >= options.max_turns)
    return ended(AgentEnd::kTurns, format("{} answers of the model are the limit", options.max_turns));
  if (options.token_budget > 0 && state_.use.total() >= options.token_budget)
    return ended(AgentEnd::kBudget, format("{} tokens were used, the budget is {}", state_.use.total(), options.token_budget));
  return std::nullopt;
}

Result<ModelReply> Loop::ask_model() {
  ModelRequest request{.system = state_.system_prompt(),
                       .messages = run_.messages,
                       .tools = state_.specs(may_delegate_),
                       .max_output = state_.options.max_output};
  if (const std::uint64_t budget = state_.options.token_budget; budget > 0)
    request.max_output = std::clamp<std::uint64_t>(budget - state_.use.total(), 1, request.max_output);
  tell({.kind = AgentEvent::Kind::kModelBegins});
  const ModelContext context{
      .cancel = run_.cancel,
      .on_text = [this](std::string_view piece) { tell({.kind = AgentEvent::Kind::kText, .text = std::string(piece)}); },
      .on_retry =
          [this](std::string_view reason, std::chrono::milliseconds wait) {
            tell({.kind = AgentEvent::Kind::kRetry, .text = std::string(reason), .wait = wait});
          }};
  ModelReply reply = BELLJAR_TRY(state_.options.model->ask(request, context));
  if (reply.use.total() == 0) reply.use = estimated(request, reply);
  return reply;
}

void Loop::add_reply(ModelReply& reply) {
  ++run_.turn;
  run_.use.input += reply.use.input;
  run_.use.output += reply.use.output;
  settle();
  reply.message.role = ChatRole::kAssistant;
  for (const auto& middleware : std::views::reverse(state_.options.middleware)) middleware->after_model(run_, reply);
  // Each result must find its call: some servers leave the id out, or give the same twice.
  std::set<std::string> ids;
  for (ToolUse& call : reply.message.calls) {
    while (call.id.empty() || !ids.insert(call.id).second) call.id = format("call_{}_{}_{}", run_.id, run_.turn, ids.size());
  }
  run_.messages.push_back(reply.message);
  tell({.kind = AgentEvent::Kind::kModelEnds});
}

void Loop::answer_calls(const std::vector<ToolUse>& calls) {
  for (const ToolUse& call : calls) {
    tell({.kind = AgentEvent::Kind::kToolBegins, .call = call});
    ChatMessage message{.role = ChatRole::kTool,
                        .text = "cancelled: the user ended the run",
                        .call_id = call.id,
                        .tool = call.name,
                        .failed = true};
    if (!run_.cancel.cancelled()) message = state_.answer(run_, call);
    run_.messages.push_back(std::move(message));
    state_.changed();
  }
}

AgentResult Loop::said(const ModelReply& reply) const {
  AgentResult result = ended(AgentEnd::kDone, "");
  result.text = reply.message.text;
  if (reply.stop == ModelStop::kLength) {
    result.end = AgentEnd::kLength;
    result.reason = format("the model's answer was cut at {} tokens", state_.options.max_output);
  } else if (reply.stop == ModelStop::kRefused) {
    result.end = AgentEnd::kRefused;
    result.reason = "the model declined";
  }
  return result;
}

AgentResult Loop::failed(Error error) const {
  if (run_.cancel.cancelled() || error.code() == Code::kCanceled) return ended(AgentEnd::kCancelled, "it was cancelled");
  AgentResult result = ended(AgentEnd::kFailed, error.line());
  result.error = std::move(error);
  return result;
}

AgentResult Loop::go() {
  for (;;) {
    if (auto end = why_not_on()) return std::move(*end);
    for (const auto& middleware : state_.options.middleware) middleware->before_model(run_);
    settle();
    if (auto end = why_not_on()) return std::move(*end);
    auto reply = ask_model();
    if (!reply) return failed(std::move(reply).error());
    add_reply(*reply);
    state_.changed();
    if (reply->message.calls.empty()) return said(*reply);
    answer_calls(reply->message.calls);
  }
}

}  // namespace

AgentResult run_loop(State& state, AgentRun& run, bool may_delegate) {
  const auto& all = state.options.middleware;
  for (const auto& middleware : all) middleware->before_run(run);
  AgentResult result = Loop(state, run, may_delegate).go();
  for (const auto& middleware : std::views::reverse(all)) middleware->after_run(run, result);
  return result;
}

}  // namespace belljar::agent
