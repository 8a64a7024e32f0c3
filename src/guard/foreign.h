// Settings of other programs, read as they are: SandboxSettings JSON (Blade, Claude), srt settings JSON, the sandbox keys of Codex'
// config.toml. Every field is honoured, or needs nothing here and the report says why, or is refused by name; none is dropped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "belljar/result.h"
#include "guard/permission_settings.h"

namespace belljar::guard {

enum class Dialect { kSandboxSettings, kSrt, kCodex };
std::string_view to_string(Dialect dialect) noexcept;

struct Field {
  enum class Treatment {
    kPolicy,
    kPermission,
    kNotNeeded,
    kRefused,
    kOther
  };  // kOther: a setting that has nothing to do with sandboxes
  std::string name;  // "network.allowedDomains"
  Treatment treatment = Treatment::kPolicy;
  std::string detail;  // what became of it, or why not
  std::string note{};  // what somebody may expect of it that it does not do
  bool operator==(const Field&) const = default;
};
std::string_view to_string(Field::Treatment treatment) noexcept;

struct Imported {
  Dialect dialect = Dialect::kSandboxSettings;
  std::string policy;             // a policy file, TOML; it parses
  PermissionSettings permission;  // what concerns asking
  bool has_permission = false;
  bool is_off = false;        // the settings ask for no sandbox, and so does the policy
  std::vector<Field> fields;  // in the order of the file
};

// All of it as one policy file, which `belljar run`, `mcp` and `agent` read.
std::string to_policy_file(const Imported& imported);

// A table `[permission]` as rules files take it.
std::string to_toml(const PermissionSettings& settings);

// `without`: refused fields that the caller gives up by name. Errors: kInvalidArgument, the file is none of the three or a value
// has the wrong type; kUnimplemented, a field is refused: all of them are named.
Result<Imported> import_settings(std::string_view text, std::string_view file, const std::vector<std::string>& without);

}  // namespace belljar::guard
