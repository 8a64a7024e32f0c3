// An agent: a model proposes tool calls, each is judged, what may run runs in a sandbox, the model sees what came of it, until it
// is done.
//
//   auto model = BELLJAR_TRY(http_model({.wire = ModelWire::kAnthropic, .url = "https://api.anthropic.com", .model = m, .key =
//   k})); Agent agent({.model = model, .sandbox = sandbox, .permit = permit, .ask = ask});   // a sandbox that was started
//   AgentResult result = agent.run("Make the tests pass");
//   if (result.end == AgentEnd::kDone) use(result.text);
//
// Each call goes this way, one after the other, also those that a model proposes at once: provenance (Turn) > guardian > permission
// > the user > the sandbox. What a tool says is data: the content policy decides what of it the model sees, between delimiters
// that it cannot know. Link belljar::agent (it holds a parser of bash and needs libcurl). Why: docs/design/agent.md.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/agent_model.h"
#include "belljar/call_record.h"
#include "belljar/cancel.h"
#include "belljar/content_policy.h"
#include "belljar/error.h"
#include "belljar/guardian.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "belljar/tools.h"
#include "belljar/turn.h"

namespace belljar {

namespace agent {
struct State;
}

enum class AgentSay { kRun, kAsk, kRefuse };
struct AgentOpinion {
  AgentSay say = AgentSay::kAsk;
  std::string reason, next;
};
// What rules and permission say of an act.
using AgentPermit = std::function<AgentOpinion(const ToolRequest&)>;

struct AgentQuestion {
  ToolRequest request;
  std::string reason;              // why it is asked; may quote hostile text: escape before showing
  std::vector<Evidence> evidence;  // where the call's strings came from; empty: permission asks, not provenance
};
enum class AgentAnswer { kNo, kOnce, kSession };  // kSession: exactly this call, until the agent goes
using AgentAsk = std::function<AgentAnswer(const AgentQuestion&)>;

enum class AgentEnd {
  kDone,
  kCancelled,
  kTurns,    // max_turns
  kBudget,   // token_budget
  kLoop,     // the same calls with the same results, again and again
  kLength,   // the model's answer was cut by its own limit
  kRefused,  // the model declined
  kFailed,   // no answer from the model: `error`
  kStopped,  // a middleware ended it
};
std::string_view to_string(AgentEnd end) noexcept;

struct AgentResult {
  AgentEnd end = AgentEnd::kDone;
  std::string text;    // the model's last words
  std::string reason;  // where it was not done
  std::optional<Error> error;
  TokenUse use;
  std::size_t turns = 0;    // answers of the model
  std::size_t unasked = 0;  // calls that were not done: somebody was to be asked, and there was nobody
};

struct AgentEvent {
  enum class Kind { kModelBegins, kText, kRetry, kModelEnds, kToolBegins, kToolEnds, kNote, kTodo, kEnd };
  Kind kind = Kind::kNote;
  std::string agent;  // empty: the agent itself; else its sub-agent's name
  std::string text;  // kText: a piece; kRetry, kNote: a sentence; kToolEnds: the whole result, raw; kTodo: the list; kEnd: the last
                     // words, or the reason
  ToolUse call;      // of kToolBegins and kToolEnds
  bool failed = false;
  AgentEnd end = AgentEnd::kDone;
  std::chrono::milliseconds wait{0};  // of kRetry
  TokenUse use;                       // so far
  std::size_t turn = 0;
};
std::string_view to_string(AgentEvent::Kind kind) noexcept;

// What a middleware sees and may change of a run.
struct AgentRun {
  unsigned id = 0;  // differs for each run and sub-run
  std::string agent;
  std::string task;
  std::vector<ChatMessage>& messages;  // as the model will see them
  ModelProvider& model;
  CancelToken cancel;
  std::size_t turn = 0;
  TokenUse use;
  std::function<void(AgentEvent)> tell;
  // A sub-agent with the same sandbox, judges and provenance, and no words of its parent's but these. It cannot delegate again.
  std::function<AgentResult(std::string name, std::string prompt)> delegate;
  std::optional<AgentEnd> stop;  // set: the run ends before the next question to the model
  std::string stop_reason;
};

struct MiddlewareAnswer {
  ToolResult result;
  // The result is the user's own configuration or a sentence of ours: shown to the model as it is, and its strings count as the
  // user's. Never true for what a tool or a model wrote.
  bool trusted = false;
};

// Around runs, questions to the model and tools. before_* are called in the order of the list, after_* in the reverse.
class AgentMiddleware {
 public:
  AgentMiddleware() = default;
  AgentMiddleware(const AgentMiddleware&) = delete;
  AgentMiddleware& operator=(const AgentMiddleware&) = delete;
  virtual ~AgentMiddleware() = default;

  // At the end of the system prompt.
  virtual std::string prompt() const { return {}; }
  virtual void before_run(AgentRun& /*run*/) {}
  virtual void after_run(AgentRun& /*run*/, AgentResult& /*result*/) {}
  virtual void before_model(AgentRun& /*run*/) {}
  virtual void after_model(AgentRun& /*run*/, ModelReply& /*reply*/) {}
  // A result: it is the answer, and the call is not made.
  virtual std::optional<ToolResult> before_tool(AgentRun& /*run*/, const ToolUse& /*call*/) { return std::nullopt; }
  virtual void after_tool(AgentRun& /*run*/, const ToolUse& /*call*/, ToolResult& /*result*/) {}
  // Tools of its own. They are not judged: whatever reaches beyond the agent goes through the sandbox's tools.
  virtual std::vector<ToolSpec> tools() const { return {}; }
  virtual MiddlewareAnswer call(AgentRun& run, const ToolUse& call);
};

struct AgentOptions {
  std::shared_ptr<ModelProvider> model;
  std::shared_ptr<Sandbox> sandbox;
  ToolOptions tools;  // its hook is asked first
  // Empty: reading runs, all else is asked about.
  AgentPermit permit;
  // From the thread of run(). Empty: there is nobody to ask, and that means no.
  AgentAsk ask;
  std::shared_ptr<Guardian> guardian;
  // What provenance sees of the workspace: workspace_files(sandbox). Empty: of a file that is run only what calls wrote is known.
  WorkspaceFiles files;
  CallRecorder record;                 // of each verdict and answer, before anything is done; may be empty
  std::optional<ContentGate> content;  // unset: that of a ContentPolicy as it is by default
  std::string system;                  // in front of our own system prompt
  std::size_t max_turns = 100;         // of one run
  std::uint64_t token_budget = 0;      // of the agent's life, in and out together; 0: none
  std::uint64_t max_output = 8192;     // tokens of one answer
  std::vector<std::shared_ptr<AgentMiddleware>> middleware;
  std::function<void(const AgentEvent&)> on_event;
  // After each step that changed the conversation.
  std::function<void(const std::vector<ChatMessage>&)> on_change;
};

// One thread at a time; cancelling is safe from any. Nothing of a command is left when it is gone, the sandbox is the caller's.
class Agent {
 public:
  explicit Agent(AgentOptions options);
  ~Agent();
  Agent(Agent&&) noexcept;
  Agent& operator=(Agent&&) noexcept;

  // Goes on with the conversation so far.
  AgentResult run(std::string task, const CancelToken& cancel = {});
  // An earlier conversation. What its tools said stays untrusted.
  void resume(std::vector<ChatMessage> messages);
  const std::vector<ChatMessage>& messages() const noexcept;

 private:
  std::unique_ptr<agent::State> state_;
};

// A conversation as a file: one JSON object, mode 0600, replaced whole. Calls that were not answered are closed when it is loaded.
// Errors: kNotFound; kInvalidArgument, it is no conversation; kPermissionDenied, others may write it; kResourceExhausted.
Result<std::vector<ChatMessage>> load_conversation(const std::string& path);
Result<void> save_conversation(const std::string& path, const std::vector<ChatMessage>& messages);

// The middleware that is here.
// Ends a run whose calls repeat (alone or in turns of up to four) with the same results: a word to the model the third time, the
// end the fifth.
std::shared_ptr<AgentMiddleware> loop_detection();
// When the messages are larger than `most_bytes`, the model is asked to sum up all but the newest `keep`.
std::shared_ptr<AgentMiddleware> summary(std::size_t most_bytes = 400'000, std::size_t keep = 12);
std::shared_ptr<AgentMiddleware> todo_list();   // a tool `todo`; the list is told as an event
std::shared_ptr<AgentMiddleware> sub_agents();  // a tool `task`
// One line of JSON for each step: sizes and names, not what was said.
std::shared_ptr<AgentMiddleware> run_log(std::function<void(std::string line)> write);

// Markdown files with front matter (`name`, `description`): DIRECTORY/NAME/SKILL.md or DIRECTORY/NAME.md. The model is told names
// and descriptions, and reads one with the tool `skill`. Files that others may write are passed over, and those that really lie in
// `workspace` (canonical), where commands of an agent can write them; `warn` is told of what was.
std::shared_ptr<AgentMiddleware> skills(const std::string& directory, const std::function<void(std::string)>& warn = {},
                                        const std::string& workspace = "");

}  // namespace belljar
