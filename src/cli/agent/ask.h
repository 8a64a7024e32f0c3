// Asks the user on the terminal.
#pragma once

#include "belljar/agent.h"

namespace belljar::cli {

// stdin and stderr are terminals.
bool can_ask() noexcept;
// Waits for a line. What was typed before the question counts for nothing; the end of input and a cancelled call mean no.
AgentAnswer ask_on_terminal(const AgentQuestion& question, bool colour);

}  // namespace belljar::cli
