// What an agent keeps from one run to the next, and what its sub-agents share with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/agent.h"
#include "belljar/call_record.h"
#include "belljar/cancel.h"
#include "belljar/content_policy.h"
#include "belljar/result.h"
#include "belljar/tools.h"
#include "belljar/turn.h"
#include "shell/script.h"

namespace belljar::agent {

// The tool whose argument `reveal` shows what was withheld. Tools of documents have none.
inline constexpr std::string_view kRevealer = "read_file";

struct State {
  explicit State(AgentOptions given);

  // The hook of the toolbox: everything that may be said about a call before it is made.
  ToolVerdict judge(const ToolRequest& request);
  ToolVerdict ask(const ToolRequest& request, CallRecord step);
  Result<std::int64_t> record(const CallRecord& step) const;
  // A call from its proposal to the message for the model.
  ChatMessage answer(AgentRun& run, const ToolUse& call);
  MiddlewareAnswer make_call(AgentRun& run, const ToolUse& call);
  // A passage that was withheld, by its id, if somebody lets the model see it.
  ToolResult show_withheld(const std::string& id, const CancelToken& cancel);
  std::string keep(const Withheld& passage);
  Entered entered_of(const ToolUse& call, std::string text);
  // As data, between delimiters, through the content policy: unless `own_from` is unset.
  std::string shown(const ToolUse& call, const Entered& entered, std::optional<std::size_t> own_from);
  AgentMiddleware* owner_of(std::string_view tool) const;
  std::string system_prompt() const;
  std::vector<ToolSpec> specs(bool may_delegate) const;
  void tell(const AgentEvent& event) const {
    if (options.on_event) options.on_event(event);
  }
  void changed() const {
    if (options.on_change) options.on_change(messages);
  }

  AgentOptions options;
  ContentGate gate;
  WithheldTexts withheld;
  std::optional<Withheld> revealed;  // by the call in hand
  Turn turn;
  shell::ShellReader reader;
  Toolbox toolbox;
  std::vector<ChatMessage> messages;
  std::string user;  // what the user wrote, for the guardian
  std::set<std::string> approved;
  std::size_t unasked = 0;   // calls that were to be asked about, with nobody to ask
  bool judged = false;       // the call in hand has reached judge()
  bool was_refused = false;  // and is not made; why is told in our own words
  TokenUse use;
  unsigned runs = 0;
  std::string speaking;  // the sub-agent that makes the call
};

// The run of an agent or a sub-agent to its end.
AgentResult run_loop(State& state, AgentRun& run, bool may_delegate);

}  // namespace belljar::agent
