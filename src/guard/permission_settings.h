// What is asked, as a value: the fields of SandboxSettings that concern permission (document 004). `[permission]` in a rules file
// of the user, and what `policy import` makes of foreign settings.
#pragma once

#include <string>
#include <vector>

namespace belljar::guard {

enum class PermissionMode { kDefault, kAutoEdit, kPlan, kYolo };
enum class SandboxState { kOn, kOff, kUnavailable };  // kUnavailable: wanted, and this machine cannot

struct PermissionSettings {
  PermissionMode mode = PermissionMode::kDefault;
  SandboxState sandbox = SandboxState::kOn;
  bool auto_allow_bash_if_sandboxed = false;
  bool allow_unsandboxed_commands = false;     // when the sandbox is unavailable; false fails closed
  std::vector<std::string> excluded_commands;  // prefixes that run outside; "docker", "npm run test:*"
  bool ask_for_reads = true;                   // false: commands known to only read run unasked
  bool operator==(const PermissionSettings&) const = default;
};

}  // namespace belljar::guard
