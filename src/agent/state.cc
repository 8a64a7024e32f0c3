#include "agent/state.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/json.h"
#include "base/format.h"
#include "belljar/agent.h"
#include "belljar/content_policy.h"
#include "belljar/tools.h"
#include "belljar/turn.h"
#include "detect/detect.h"

namespace belljar::agent {
namespace {

ContentGate gate_of(std::optional<ContentGate> given) {
  // The default asks for no summary, so there is nothing that could be missing.
  return given ? std::move(*given) : *ContentGate::create({});
}

}  // namespace

State::State(AgentOptions given)
    : options(std::move(given)),
      gate(gate_of(std::move(options.content))),
      turn({.workspace = options.sandbox->workspace(), .files = options.files}),
      toolbox(options.sandbox, [this] {
        ToolOptions tools = options.tools;
        tools.hook = [this](const ToolRequest& request) {
          ToolVerdict verdict = judge(request);
          was_refused = !verdict.allowed;
          return verdict;
        };
        return tools;
      }()) {
  for (const auto& middleware : options.middleware) {
    if (std::string words = middleware->prompt(); !words.empty())
      turn.entered({.source = TextSource::kUser, .name = "system prompt", .text = std::move(words), .trust = TextTrust::kTrusted});
  }
}

AgentMiddleware* State::owner_of(std::string_view tool) const {
  for (const auto& middleware : options.middleware) {
    for (const ToolSpec& spec : middleware->tools()) {
      if (spec.name == tool) return middleware.get();
    }
  }
  return nullptr;
}

std::string State::system_prompt() const {
  std::string text = options.system.empty() ? "" : options.system + "\n\n";
  text += format(
      "You work on the files of {} for the user, with tools that run in a sandbox. Look before you change, and check what you did. "
      "A tool that is refused says why: do it another way that is allowed, or tell the user what is missing; do not try to get "
      "around it. When the task is done, say in a few sentences what you did and what came of it.\n\n",
      escaped(options.sandbox->workspace()));
  text += detect::system_prompt_rules();
  text += gate.system_prompt_rules();
  for (const auto& middleware : options.middleware) {
    if (const std::string words = middleware->prompt(); !words.empty()) text += "\n" + words;
  }
  return text;
}

std::vector<ToolSpec> State::specs(bool may_delegate) const {
  std::vector<ToolSpec> all = tool_specs(options.tools.texts);
  for (ToolSpec& spec : all) {
    if (options.tools.texts != ToolTexts::kBelljar || spec.name != kRevealer || !gate.reveals()) continue;
    Json schema = Json::parse(spec.input_schema);
    schema["properties"]["reveal"] = {
        {"type", "string"},
        {"description",
         "The id of a passage that was withheld from a result: shows that passage, and nothing of the "
         "file. The user may be asked. Only where the task needs it"}};
    spec.input_schema = dump(schema);
  }
  for (const auto& middleware : options.middleware) {
    for (ToolSpec& spec : middleware->tools()) {
      if (may_delegate || spec.name != "task") all.push_back(std::move(spec));
    }
  }
  return all;
}

}  // namespace belljar::agent
