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
  std::string level;    // --defence; empty: on, and judge with texts of the documents
  std::string content;  // --content
  std::string review_wait = "45s";
  GuardianFlags guardian;
};

void add_defence_options(const OptionParser& command, DefenceFlags& flags);

// Reads the files. Replaces this process by the program with a guardian in it where one is asked for and this one has none.
// Errors: kInvalidArgument, naming the option; kNotFound, a file.
Result<mcp::DefenceOptions> defence_of(const DefenceFlags& flags, ToolTexts texts);

// One of two files: no_guardian.cc hands over to belljar-mcp-guardian, guardian/with_guardian.cc is linked into that.
Result<std::function<Judgement(const GuardianQuestion&)>> make_guardian(GuardianOptions options);

}  // namespace belljar::cli
