#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/result.h"
#include "guard/foreign.h"
#include "guard/importer.h"
#include "guard/permission.h"
#include "guard/permission_settings.h"
#include "policy/document.h"
#include "policy/paths.h"

namespace belljar::guard {

using policy::Member;
using policy::Node;
using Treatment = Field::Treatment;

namespace {

constexpr std::string_view kNothingOutside =
    "nothing that an agent calls runs outside of the sandbox; open what such commands need: network.allow_unix_sockets, "
    "filesystem.writable_roots";

// SandboxSettings, as documents and SDKs of Blade and Claude spell it.
constexpr FieldRule kSandboxSettings[] = {
    {"enabled", FieldHandling::kEnabled, ""},
    {"autoAllowBashIfSandboxed", FieldHandling::kPermission, "auto_allow_bash_if_sandboxed"},
    {"excludedCommands", FieldHandling::kOnlyFalse, kNothingOutside},
    {"allowUnsandboxedCommands", FieldHandling::kOnlyFalse, kNothingOutside},
    {"failIfUnavailable", FieldHandling::kOnlyTrue, "what a policy asks and this machine cannot hold is always an error"},
    {"enableWeakerNestedSandbox", FieldHandling::kFlag, "enable_weaker_nested_sandbox"},
    {"ignoreViolations.file", FieldHandling::kTexts, "ignore_violations.file"},
    {"ignoreViolations.network", FieldHandling::kTexts, "ignore_violations.network"},
    {"network.allowLocalBinding", FieldHandling::kFlag, "network.allow_local_binding"},
    {"network.allowUnixSockets", FieldHandling::kPaths, "network.allow_unix_sockets"},
    {"network.allowAllUnixSockets", FieldHandling::kFlag, "network.allow_all_unix_sockets"},
    {"network.httpProxyPort", FieldHandling::kUpstream, "http"},
    {"network.socksProxyPort", FieldHandling::kUpstream, "socks5h"},
    {"network.allowedDomains", FieldHandling::kDomains, "network.allowed_domains"},
    {"network.deniedDomains", FieldHandling::kTexts, "network.denied_domains"},
    {"network.strictAllowlist", FieldHandling::kOnlyTrue, "a host that no rule allows is refused, never asked about"},
    {"network.allowManagedDomainsOnly", FieldHandling::kRefused,
     "managed settings are the file of the system, /etc/belljar/policy.toml"},
    {"network.allowMachLookup", FieldHandling::kOnlyFalse, kMac},
    {"network.tlsTerminate", FieldHandling::kOnlyFalse, kNoTls},
    {"filesystem.allowWrite", FieldHandling::kPaths, "filesystem.writable_roots"},
    {"filesystem.denyWrite", FieldHandling::kPaths, "filesystem.readonly_paths"},
    {"filesystem.denyRead", FieldHandling::kPaths, "filesystem.blocked_paths"},
    {"filesystem.allowRead", FieldHandling::kReadable, ""},
    {"filesystem.disabled", FieldHandling::kOnlyFalse,
     "it drops all file rules; choose mode = \"danger-full-access\" in a policy, aloud"},
    {"filesystem.allowManagedReadPathsOnly", FieldHandling::kRefused,
     "managed settings are the file of the system, /etc/belljar/policy.toml"},
    {"enableWeakerNetworkIsolation", FieldHandling::kOnlyFalse, kMac},
    {"allowAppleEvents", FieldHandling::kOnlyFalse, kMac},
    {"credentials", FieldHandling::kOnlyFalse, kNoCredentials},
    {"ripgrep", FieldHandling::kNotNeeded, kOwn},
    {"bwrapPath", FieldHandling::kNotNeeded, kOwn},
    {"socatPath", FieldHandling::kNotNeeded, kOwn},
    {"enabledPlatforms", FieldHandling::kRefused, "which machines use a policy is for who installs it"},
};

}  // namespace

std::span<const FieldRule> field_rules_of_sandbox_settings() noexcept { return kSandboxSettings; }

// Blade and Claude run commands without a sandbox unless `enabled` is true; what the other fields say counts only with one.
void Importer::settle_off() {
  if (result_.dialect != Dialect::kSandboxSettings || is_on_) return;
  result_.is_off = result_.has_permission = true;
  result_.permission.sandbox = SandboxState::kOff;
  result_.permission.auto_allow_bash_if_sandboxed = false;
  lines_.clear();
  paths_.clear();
  lines_["mode"] = "\"danger-full-access\"";
  for (Field& field : result_.fields) {
    const bool is_mode = modes_.contains(field.name) || field.name == "permissionMode";
    const bool is_dropped = field.treatment == Treatment::kPolicy || field.name == "autoAllowBashIfSandboxed" ||
                            (field.treatment == Treatment::kRefused && field.detail != kUnknown);
    if (is_mode || !is_dropped) continue;
    field.treatment = Treatment::kNotNeeded;
    field.detail = "counts only with `enabled`: true";
  }
}

// Claude's rules for its own tools: what they keep a path from, a command is kept from too.
Result<void> Importer::rules_of_tools(const Node& permissions) {
  if (permissions.kind != Node::Kind::kTable)
    return policy::error_at(source_, permissions.at, format("`permissions` is {}, not a table", policy::describe(permissions)));
  for (const Member& member : permissions.members) {
    if (member.key == "defaultMode") {
      BELLJAR_CHECK(permission_mode(member, "permissions.defaultMode"));
      continue;
    }
    if (member.key != "deny") {
      other("permissions." + member.key);
      continue;
    }
    for (const Node& rule : member.value.items) at_ = rule.at, deny_rule(rule.text);
    if (member.value.kind != Node::Kind::kList ||
        std::ranges::any_of(member.value.items, [](const Node& rule) { return rule.kind != Node::Kind::kText; }))
      return wrong(member, "a list of text");
  }
  return {};
}

// Read(//x) is /x, Read(~/x) in the home, Read(./x) where the command starts, Read(x) a name at any depth, as in .gitignore.
void Importer::deny_rule(std::string_view rule) {
  const std::string name = format("permissions.deny {}", rule);
  const std::size_t open = std::min(rule.find('('), rule.size());
  const std::string_view tool = rule.substr(0, open);
  const bool reads = tool == "Read";
  if (!reads && tool != "Edit" && tool != "Write") return note(name, Treatment::kOther, "keeps no path from a command");
  std::string_view inside = rule.substr(std::min(open + 1, rule.size()));
  if (inside.ends_with(')')) inside.remove_suffix(1);
  const bool any_depth = inside.find('/') == std::string_view::npos;
  if (inside.ends_with("/**")) inside.remove_suffix(3);
  std::string path(inside.starts_with("./") ? inside.substr(2) : inside);
  if (inside.starts_with("//")) path.erase(0, 1);
  else if (inside.starts_with('/')) return refuse(name, "where the file lies decides what it means; begin it with //, ~/ or ./");
  else if (any_depth) path = "**/" + path;
  const bool names_all = path.find_first_not_of("*./~") == std::string::npos;
  const bool half_pattern =
      path.find('*') == std::string::npos && path.find_first_of("?[") != std::string::npos;  // a name to a policy
  if (names_all || half_pattern || inside.starts_with('!') || !policy::check_glob(path))
    return refuse(name, "is not a path or pattern of a policy");
  add_paths(reads ? "filesystem.blocked_paths" : "filesystem.readonly_paths", {path}, name);
}

Result<void> Importer::permission(const FieldRule& meaning, const Member& member, const std::string& name) {
  result_.has_permission = true;
  result_.permission.auto_allow_bash_if_sandboxed = BELLJAR_TRY(flag(member));
  note(name, Treatment::kPermission, std::string(meaning.target));
  return {};
}

// Blade's permissionMode and Claude's permissions.defaultMode. A mode of Claude's that has no counterpart leaves ours at asking;
// Blade's words mean nothing to Claude.
Result<void> Importer::permission_mode(const Member& member, const std::string& name) {
  static constexpr std::pair<std::string_view, PermissionMode> kModes[] = {
      {"default", PermissionMode::kDefault}, {"acceptEdits", PermissionMode::kAutoEdit},
      {"plan", PermissionMode::kPlan},       {"autoEdit", PermissionMode::kAutoEdit},
      {"yolo", PermissionMode::kYolo},
  };
  constexpr std::size_t kOfClaude = 3;  // the first so many
  const bool is_claude = name != "permissionMode";
  const std::span known(kModes, is_claude ? kOfClaude : std::size(kModes));
  if (member.value.kind != Node::Kind::kText) return wrong(member, "text");
  const auto found =
      std::ranges::find(known, std::string_view(member.value.text), &std::pair<std::string_view, PermissionMode>::first);
  if (found == known.end()) {
    if (!is_claude) {
      refuse(name, format("there is no mode {}", quoted(member.value.text)));
      return {};
    }
    modes_[name] = std::nullopt;
    note(name, Treatment::kOther, "has no counterpart; the mode stays `default`");
    return {};
  }
  modes_[name] = found->second;
  note(name, Treatment::kPermission, format("mode = \"{}\"", to_string(found->second)));
  return {};
}

// Where the two say different things nobody knows which one is meant; who gives one up by name has said so.
void Importer::settle_permission_mode(const std::vector<std::string>& without) {
  const auto is_given_up = [&](const std::string& name) { return std::ranges::find(without, name) != without.end(); };
  if (modes_.size() == 2 && modes_.begin()->second != modes_.rbegin()->second) {
    const std::string first = modes_.begin()->first;
    const std::string second = modes_.rbegin()->first;
    for (Field& field : result_.fields) {
      if (field.name != first && field.name != second) continue;
      const std::string& other = field.name == first ? second : first;
      if (is_given_up(other) && !is_given_up(field.name)) continue;
      field.treatment = Treatment::kRefused;
      field.detail = format("says another mode than `{}`", other);
      modes_.erase(field.name);
    }
  }
  for (const auto& [name, mode] : modes_) {
    if (!mode) continue;
    result_.permission.mode = *mode;
    result_.has_permission = true;
  }
}

}  // namespace belljar::guard
