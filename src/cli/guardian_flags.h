// The options that name a second model, which looks at calls before they are made.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "belljar/guardian.h"
#include "belljar/result.h"
#include "cli/command_line.h"

namespace belljar::cli {

struct GuardianFlags {
  std::string url, model, key_file;
  std::string wire, failure, timeout;  // empty: openai, block, 10s
};

void add_guardian_options(const OptionParser& command, GuardianFlags& flags);

// None without --guardian-url. Takes the key's variable out either way: nothing started later is to find it. Errors:
// kInvalidArgument, naming the option; kNotFound, the file.
Result<std::optional<GuardianOptions>> guardian_of(const GuardianFlags& flags);

// The word of an option that is a time, not negative.
Result<std::chrono::milliseconds> time_of(std::string_view option, const std::string& text);

}  // namespace belljar::cli
