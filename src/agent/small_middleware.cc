// Three small middlewares: a to-do list that the user sees, sub-agents (`task`), and the log of runs.
//
// The answer of the to-do list is trusted, since it holds numbers that we counted. The answer of a sub-agent
// is not: it is made of what that agent read, so it enters the conversation as data, like any tool's result.
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/json.h"
#include "base/format.h"
#include "belljar/agent.h"
#include "belljar/agent_model.h"
#include "belljar/tools.h"

namespace belljar {
namespace {

using agent::Json;

MiddlewareAnswer refused(std::string text) { return {.result = {.text = std::move(text), .failed = true}}; }

class TodoList final : public AgentMiddleware {
 public:
  std::vector<ToolSpec> tools() const override {
    return {
        {.name = "todo",
         .title = "Keep a list",
         .description = "For work of several steps: replaces the list of steps that the user sees. Give all of it each time.",
         .kind = ToolKind::kControl,
         .input_schema =
             R"({"type":"object","properties":{"items":{"type":"array","items":{"type":"object","properties":{"text":{"type":"string"},"status":{"type":"string","enum":["open","doing","done"]}},"required":["text","status"],"additionalProperties":false}}},"required":["items"],"additionalProperties":false})"}};
  }
  MiddlewareAnswer call(AgentRun& run, const ToolUse& call) override {
    constexpr std::size_t kMostItems = 100, kLongest = 500;
    const Json arguments = agent::arguments_of(call);
    const Json& items = agent::member(arguments, "items");
    if (!items.is_array() || items.size() > kMostItems)
      return refused("`items` must be a list of at most 100 objects with `text` and `status`");
    std::string list;
    std::size_t open = 0;
    for (const Json& item : items) {
      const std::string text = agent::text_of(item, "text"), status = agent::text_of(item, "status");
      const bool known = status == "open" || status == "doing" || status == "done";
      if (text.empty() || text.size() > kLongest || !known)
        return refused("an item is {\"text\": \"...\", \"status\": \"open\" | \"doing\" | \"done\"}");
      list += format("[{}] {}\n", status == "done" ? 'x' : status == "doing" ? '>' : ' ', text);
      open += status == "done" ? 0 : 1;
    }
    run.tell({.kind = AgentEvent::Kind::kTodo, .text = std::move(list)});
    return {.result = {.text = format("the list has {} items, {} of them not done", items.size(), open)}, .trusted = true};
  }
};

class SubAgents final : public AgentMiddleware {
 public:
  std::vector<ToolSpec> tools() const override {
    return {
        {.name = "task",
         .title = "Let a sub-agent do it",
         .description =
             "Gives a part of the work (a search, a review, one module) to an agent of its own with the same tools and an "
             "empty conversation, and returns what it says at its end. It knows nothing but `prompt`.",
         .kind = ToolKind::kControl,
         .input_schema =
             R"({"type":"object","properties":{"prompt":{"type":"string","description":"All that the sub-agent needs to know"}},"required":["prompt"],"additionalProperties":false})"}};
  }
  MiddlewareAnswer call(AgentRun& run, const ToolUse& call) override {
    const std::string prompt = agent::text_of(agent::arguments_of(call), "prompt");
    if (prompt.empty()) return refused("`prompt` must say what is to be done");
    const AgentResult result = run.delegate("task", prompt);
    if (result.end == AgentEnd::kDone) return {.result = {.text = result.text}};
    return refused(format("the sub-agent ended without an answer: {}", result.reason));
  }
};

class RunLog final : public AgentMiddleware {
 public:
  explicit RunLog(std::function<void(std::string)> write) : write_(std::move(write)) {}
  void before_run(AgentRun& run) override { put(run, "run_begins", {}); }
  void after_model(AgentRun& run, ModelReply& reply) override {
    put(run, "model",
        {{"input_tokens", reply.use.input}, {"output_tokens", reply.use.output}, {"calls", reply.message.calls.size()}});
  }
  void after_tool(AgentRun& run, const ToolUse& call, ToolResult& result) override {
    put(run, "tool",
        {{"tool", call.name},
         {"argument_bytes", call.arguments.size()},
         {"result_bytes", result.text.size()},
         {"failed", result.failed},
         {"violations", result.violations.size()}});
  }
  void after_run(AgentRun& run, AgentResult& result) override {
    put(run, "run_ends", {{"end", to_string(result.end)}, {"turns", result.turns}});
  }

 private:
  void put(const AgentRun& run, const char* event, const Json& more) const {
    Json line{{"event", event}, {"run", run.id}, {"agent", run.agent}, {"turn", run.turn}};
    if (more.is_object()) line.update(more);
    write_(agent::dump(line));
  }
  const std::function<void(std::string)> write_;
};

}  // namespace

std::shared_ptr<AgentMiddleware> todo_list() { return std::make_shared<TodoList>(); }
std::shared_ptr<AgentMiddleware> sub_agents() { return std::make_shared<SubAgents>(); }
std::shared_ptr<AgentMiddleware> run_log(std::function<void(std::string)> write) {
  return std::make_shared<RunLog>(std::move(write));
}

}  // namespace belljar
