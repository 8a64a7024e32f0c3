// What no agent should do unasked, by meaning and not by spelling: the patterns of the teaching documents (`rm -rf /`, `mkfs`, raw
// disk writes, redirection into system directories, `chmod 777`, a download into a shell, `sudo`, `shutdown`) as checks on parsed
// commands. So `r"m" -rf /` is caught, and `rm -rf /tmp/x`, `> /dev/null` and `echo sudo` are not.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "guard/rules.h"
#include "shell/script.h"

namespace belljar::guard {

// The result of a check on one command.
struct Finding {
  Decision decision = Decision::kPrompt;
  std::string rule;    // the check's name, a rule's pattern, or "unmatched"
  std::string reason;  // for people
  Origin origin;
  bool operator==(const Finding&) const = default;
};

struct Hazard {
  std::string_view name;
  std::string_view doc;
  std::optional<Finding> (*check)(const shell::Script& script, const shell::SimpleCommand& command);
};

std::span<const Hazard> hazards() noexcept;
bool is_hazard(std::string_view name) noexcept;

}  // namespace belljar::guard
