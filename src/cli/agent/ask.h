// Asks the user: on the terminal, or where `belljar review` looks.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "belljar/agent.h"
#include "belljar/call_record.h"
#include "belljar/redact.h"
#include "belljar/result.h"

namespace belljar::cli {

// stdin and stderr are terminals.
bool can_ask() noexcept;
// Waits for a line. What was typed before the question counts for nothing; the end of input and a cancelled call mean no.
AgentAnswer ask_on_terminal(const AgentQuestion& question, bool colour);

// By `belljar review`, which does not see `secrets`, for a session of this agent's own; an answer holds for the whole act in this
// workspace. Errors: as ReviewQueue::open.
Result<AgentAsk> ask_by_review(std::chrono::milliseconds patience, std::string workspace, std::shared_ptr<const Redactor> secrets,
                               std::function<void(const std::string&)> tell);

// To the trail, if there is one; and what was blocked or answered otherwise than by `belljar review` (`by_review`) is kept for it,
// as answered.
CallRecorder recorder_of(CallRecorder trail, std::string workspace, std::shared_ptr<const Redactor> secrets, bool by_review);

}  // namespace belljar::cli
