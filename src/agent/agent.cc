#include "belljar/agent.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/state.h"
#include "base/format.h"
#include "belljar/agent_model.h"
#include "belljar/cancel.h"
#include "belljar/turn.h"

namespace belljar {
namespace {

AgentRun make_run(agent::State& state, const std::string& name, std::string task, std::vector<ChatMessage>& messages,
                  const CancelToken& cancel) {
  return {.id = ++state.runs,
          .agent = name,
          .task = std::move(task),
          .messages = messages,
          .model = *state.options.model,
          .cancel = cancel,
          .tell =
              [&state, name](AgentEvent event) {
                event.agent = name;
                state.tell(event);
              },
          .delegate = {},
          .stop = {}};
}

AgentResult run_sub_agent(agent::State& state, std::string name, const std::string& prompt, const CancelToken& cancel) {
  // The prompt is a model's: its strings are not the user's, so the turn is not told of it.
  std::vector<ChatMessage> messages{{.text = prompt, .made = true}};
  AgentRun run = make_run(state, name, prompt, messages, cancel);
  run.delegate = [](const std::string&, const std::string&) {
    return AgentResult{.end = AgentEnd::kStopped, .reason = "a sub-agent cannot delegate"};
  };
  state.speaking = std::move(name);
  AgentResult result = agent::run_loop(state, run, false);
  state.speaking.clear();
  return result;
}

}  // namespace

std::string_view to_string(AgentEnd end) noexcept {
  constexpr std::string_view kNames[] = {"done", "cancelled", "turns", "budget", "loop", "length", "refused", "failed", "stopped"};
  return kNames[static_cast<std::size_t>(end)];
}

std::string_view to_string(AgentEvent::Kind kind) noexcept {
  constexpr std::string_view kNames[] = {"model_begins", "text", "retry", "model_ends", "tool_begins",
                                         "tool_ends",    "note", "todo",  "end"};
  return kNames[static_cast<std::size_t>(kind)];
}

MiddlewareAnswer AgentMiddleware::call(AgentRun& /*run*/, const ToolUse& call) {
  return {.result = {.text = "there is no tool " + belljar::quoted(call.name), .failed = true}};
}

Agent::Agent(AgentOptions options) : state_(std::make_unique<agent::State>(std::move(options))) {}
Agent::~Agent() = default;
Agent::Agent(Agent&&) noexcept = default;
Agent& Agent::operator=(Agent&&) noexcept = default;

const std::vector<ChatMessage>& Agent::messages() const noexcept { return state_->messages; }

void Agent::resume(std::vector<ChatMessage> messages) {
  for (const ChatMessage& message : messages) {
    const bool by_user = message.role == ChatRole::kUser && !message.made;
    if (by_user) state_->user += message.text + "\n";
    if (by_user) state_->turn.entered({.source = TextSource::kUser, .text = message.text});
    else if (message.role != ChatRole::kAssistant)
      state_->turn.entered({.source = TextSource::kTool, .name = message.tool, .text = message.text});
  }
  state_->messages = std::move(messages);
}

AgentResult Agent::run(std::string task, const CancelToken& cancel) {
  agent::State& state = *state_;
  state.turn.entered({.source = TextSource::kUser, .text = task});
  state.user += task + "\n";
  state.messages.push_back({.role = ChatRole::kUser, .text = task});
  state.changed();
  AgentRun run = make_run(state, "", std::move(task), state.messages, cancel);
  run.delegate = [&state, cancel](std::string name, const std::string& prompt) {
    return run_sub_agent(state, std::move(name), prompt, cancel);
  };
  state.unasked = 0;
  AgentResult result = agent::run_loop(state, run, true);
  result.unasked = state.unasked;
  state.tell({.kind = AgentEvent::Kind::kEnd,
              .text = result.end == AgentEnd::kDone ? result.text : result.reason,
              .end = result.end,
              .use = state.use,
              .turn = result.turns});
  return result;
}

}  // namespace belljar
