// The options of `belljar create`, read by the command and once more, as they were given, by the keeper.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "belljar/result.h"
#include "cli/command_line.h"
#include "cli/policy_flags.h"

namespace belljar::cli {

struct CreateFlags {
  PolicyFlags policy;
  std::string name, expires = "24h", sample_every;
  bool json = false;
};

void add_create_options(const OptionParser& app, CreateFlags& flags);
// From words that add_create_options() took once.
Result<void> parse_create(std::vector<std::string> words, CreateFlags& flags);

// Unset: never. Errors: kInvalidArgument.
Result<std::optional<std::chrono::milliseconds>> expiry_of(const CreateFlags& flags);
Result<std::optional<std::chrono::milliseconds>> sampling_of(const CreateFlags& flags);

}  // namespace belljar::cli
