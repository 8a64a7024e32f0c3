// The options of belljar mcp that concern injected instructions, and what they come to.
#pragma once

#include <functional>
#include <string>

#include "belljar/guardian.h"
#include "belljar/result.h"
#include "belljar/tools.h"
#include "cli/command_line.h"
#include "cli/guardian_flags.h"
#include "mcp/defence.h"

namespace belljar::cli {

struct DefenceFlags {
  std::string level;         // --defence; empty: on, and judge with texts of the documents
  std::string content;       // --content
  std::string task;          // --task
  std::string task_file;     // --task-file
  bool task_prompt = false;  // --task-prompt
  std::string review_wait;   // --review-wait; empty: 45s, and none with texts of the documents
  GuardianFlags guardian;
};

void add_defence_options(const OptionParser& command, DefenceFlags& flags);

// Reads the files. Errors: kInvalidArgument, naming the option; kNotFound, a file.
Result<mcp::DefenceOptions> defence_of(const DefenceFlags& flags, ToolTexts texts);

}  // namespace belljar::cli
