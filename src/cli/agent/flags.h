// The command line of belljar agent, and the parts that are made of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "belljar/agent.h"
#include "belljar/agent_model.h"
#include "belljar/result.h"
#include "cli/command_line.h"
#include "cli/guardian_flags.h"
#include "cli/mcp/make_client_sandbox.h"

namespace belljar::cli {

struct AgentFlags {
  McpFlags sandbox{.usual = {}};  // policy, rules, mode
  std::string provider = "anthropic", model, base_url, key_variable, script;
  std::string conversation, skills_directory, content, log, review_wait;
  GuardianFlags guardian;
  std::size_t max_turns = 100;
  std::uint64_t token_budget = 0, max_output = 8192;
  unsigned attempts = 5;
  bool json = false, no_skills = false;
  std::vector<std::string> task;
};

void add_agent_options(const OptionParser& command, AgentFlags& flags);

// Takes the key out of this process's environment, so that nothing that it starts can have it. Errors: kInvalidArgument, kNotFound.
Result<std::shared_ptr<ModelProvider>> make_model(const AgentFlags& flags);
// Errors: kInvalidArgument, it lies where the agent's commands can write.
Result<std::string> conversation_path(const std::string& given, const std::string& workspace);

}  // namespace belljar::cli
