#include "guard/foreign.h"

#include <algorithm>
#include <map>
#include <span>

#include "base/format.h"
#include "guard/rules.h"
#include "policy/document.h"
#include "policy/json.h"
#include "policy/parse.h"

namespace belljar::guard {
namespace {

using policy::Member;
using policy::Node;
using Fate = Field::Fate;

// What a field means here.
enum class How {
  kFlag,        // a boolean policy key
  kTexts,       // a list of text
  kPaths,       // a list of paths, `{path, literal}` allowed; a trailing `/**` is the directory itself
  kDomains,     // a list of domains; not empty: network.mode proxy
  kUpstream,    // a port of the host's loopback where another proxy listens; `target` is its scheme
  kText,        // a text
  kMap,         // a table of text
  kReadable,    // a list of paths that become entries with access read
  kEnabled,     // the sandbox itself
  kPermission,  // one of PermissionSettings
  kRefused,     // by name; `detail` says why
  kOnlyFalse,   // false, absent or empty asks for nothing; anything else is refused
  kOnlyTrue,    // true is what happens anyway
  kNotNeeded,   // `detail` says why
  kMode,        // Codex' sandbox_mode
  kNetwork,     // true: the host's network
  kApproval,    // Codex' approval_policy
};

struct Meaning {
  std::string_view name;
  How how;
  std::string_view target;  // a policy key, or why not
};

constexpr std::string_view kMac = "concerns macOS, which this build does not serve";
constexpr std::string_view kOwn = "belljar starts no helper programs";
constexpr std::string_view kNoChain = "write another proxy as network.upstream_proxy in a policy; hosts stay judged here";
constexpr std::string_view kNoCredentials = "name credentials under network.credentials of a policy instead";
constexpr std::string_view kNoTls = "TLS is not taken apart by this build";

// SandboxSettings, as documents and SDKs of Blade and Claude spell it.
constexpr Meaning kSandboxSettings[] = {
    {"enabled", How::kEnabled, ""},
    {"autoAllowBashIfSandboxed", How::kPermission, "auto_allow_bash_if_sandboxed"},
    {"excludedCommands", How::kPermission, "excluded_commands"},
    {"allowUnsandboxedCommands", How::kPermission, "allow_unsandboxed_commands"},
    {"failIfUnavailable", How::kOnlyTrue,
     "what a policy asks and this machine cannot hold is always an error; allowUnsandboxedCommands says otherwise"},
    {"enableWeakerNestedSandbox", How::kFlag, "enable_weaker_nested_sandbox"},
    {"ignoreViolations.file", How::kTexts, "ignore_violations.file"},
    {"ignoreViolations.network", How::kTexts, "ignore_violations.network"},
    {"network.allowLocalBinding", How::kFlag, "network.allow_local_binding"},
    {"network.allowUnixSockets", How::kPaths, "network.allow_unix_sockets"},
    {"network.allowAllUnixSockets", How::kFlag, "network.allow_all_unix_sockets"},
    {"network.httpProxyPort", How::kUpstream, "http"},
    {"network.socksProxyPort", How::kUpstream, "socks5h"},
    {"network.allowedDomains", How::kDomains, "network.allowed_domains"},
    {"network.deniedDomains", How::kTexts, "network.denied_domains"},
    {"network.strictAllowlist", How::kOnlyTrue, "a host that no rule allows is refused, never asked about"},
    {"network.allowManagedDomainsOnly", How::kRefused, "managed settings are the file of the system, /etc/belljar/policy.toml"},
    {"network.allowMachLookup", How::kOnlyFalse, kMac},
    {"network.tlsTerminate", How::kOnlyFalse, kNoTls},
    {"filesystem.allowWrite", How::kPaths, "filesystem.writable_roots"},
    {"filesystem.denyWrite", How::kPaths, "filesystem.readonly_paths"},
    {"filesystem.denyRead", How::kPaths, "filesystem.blocked_paths"},
    {"filesystem.allowRead", How::kReadable, "filesystem.entries"},
    {"filesystem.disabled", How::kOnlyFalse, "it drops all file rules; choose mode = \"danger-full-access\" in a policy, aloud"},
    {"filesystem.allowManagedReadPathsOnly", How::kRefused,
     "managed settings are the file of the system, /etc/belljar/policy.toml"},
    {"enableWeakerNetworkIsolation", How::kOnlyFalse, kMac},
    {"allowAppleEvents", How::kOnlyFalse, kMac},
    {"credentials", How::kOnlyFalse, kNoCredentials},
    {"ripgrep", How::kNotNeeded, kOwn},
    {"bwrapPath", How::kNotNeeded, kOwn},
    {"socatPath", How::kNotNeeded, kOwn},
    {"enabledPlatforms", How::kRefused, "which machines use a policy is for who installs it"},
};

constexpr Meaning kSrt[] = {
    {"network.allowedDomains", How::kDomains, "network.allowed_domains"},
    {"network.deniedDomains", How::kTexts, "network.denied_domains"},
    {"network.deniedDomainReasons", How::kOnlyFalse, "a refusal names its rule; texts of your own are not shown"},
    {"network.deniedResolvedAddresses", How::kOnlyFalse,
     "addresses that are not public are refused after resolution anyway; lists of your own are not held"},
    {"network.strictAllowlist", How::kOnlyTrue, "a host that no rule allows is refused, never asked about"},
    {"network.allowUnixSockets", How::kPaths, "network.allow_unix_sockets"},
    {"network.allowAllUnixSockets", How::kFlag, "network.allow_all_unix_sockets"},
    {"network.allowLocalBinding", How::kFlag, "network.allow_local_binding"},
    {"network.allowMachLookup", How::kOnlyFalse, kMac},
    {"network.httpProxyPort", How::kUpstream, "http"},
    {"network.socksProxyPort", How::kUpstream, "socks5h"},
    {"network.mitmProxy", How::kOnlyFalse, kNoChain},
    {"network.parentProxy", How::kOnlyFalse, kNoChain},
    {"network.tlsTerminate", How::kOnlyFalse, kNoTls},
    {"network.allowPlaintextHeaderSet", How::kOnlyFalse, kNoTls},
    {"network.stripResponseHeaders", How::kOnlyFalse, kNoTls},
    {"network.refuseOpaqueTunnels", How::kOnlyFalse, kNoTls},
    {"network.requireHostMatch", How::kOnlyFalse, kNoTls},
    {"network.ambiguousRequestTarget", How::kOnlyFalse, kNoTls},
    {"filesystem.denyRead", How::kPaths, "filesystem.blocked_paths"},
    {"filesystem.allowRead", How::kReadable, "filesystem.entries"},
    {"filesystem.allowWrite", How::kPaths, "filesystem.writable_roots"},
    {"filesystem.denyWrite", How::kPaths, "filesystem.readonly_paths"},
    {"filesystem.allowGitConfig", How::kNotNeeded,
     "git's configuration is judged by its content, so that harmless keys can be set and others not"},
    {"filesystem.disabled", How::kOnlyFalse, "it drops all file rules; choose mode = \"danger-full-access\" in a policy, aloud"},
    {"credentials", How::kOnlyFalse, kNoCredentials},
    {"ignoreViolations", How::kOnlyFalse,
     "its rules look for text in a log line; write ignore_violations.file and .network in a policy"},
    {"enableWeakerNestedSandbox", How::kFlag, "enable_weaker_nested_sandbox"},
    {"allowNestedUserNamespaces", How::kFlag, "allow_nested_userns"},
    {"enableWeakerNetworkIsolation", How::kOnlyFalse, kMac},
    {"allowAppleEvents", How::kOnlyFalse, kMac},
    {"allowPty", How::kNotNeeded, "a terminal is given whenever stdin and stdout are terminals"},
    {"ripgrep", How::kNotNeeded, kOwn},
    {"mandatoryDenySearchDepth", How::kNotNeeded, "protected names hold at every depth without a search"},
    {"seccomp", How::kNotNeeded, kOwn},
    {"bwrapPath", How::kNotNeeded, kOwn},
    {"socatPath", How::kNotNeeded, kOwn},
    {"javaAgentJarPath", How::kNotNeeded, kOwn},
    {"windows", How::kNotNeeded, "this machine is not Windows"},
    {"git", How::kOnlyFalse, "directories that git calls safe are for git's own configuration"},
};

constexpr Meaning kCodex[] = {
    {"sandbox_mode", How::kMode, "mode"},
    {"sandbox_workspace_write.writable_roots", How::kPaths, "filesystem.writable_roots"},
    {"sandbox_workspace_write.network_access", How::kNetwork, "network.mode"},
    {"sandbox_workspace_write.exclude_tmpdir_env_var", How::kFlag, "filesystem.exclude_tmpdir_env_var"},
    {"sandbox_workspace_write.exclude_slash_tmp", How::kFlag, "filesystem.exclude_slash_tmp"},
    {"shell_environment_policy.inherit", How::kText, "environment.inherit"},
    {"shell_environment_policy.exclude", How::kTexts, "environment.exclude"},
    {"shell_environment_policy.set", How::kMap, "environment.set"},
    {"shell_environment_policy.include_only", How::kRefused,
     "it filters what `inherit` gives; environment.include only adds. Say inherit = \"none\" and list the names under "
     "environment.pass"},
    {"shell_environment_policy.ignore_default_excludes", How::kOnlyFalse,
     "variables that look like secrets stay out; name the ones that are needed under environment.pass"},
    {"approval_policy", How::kApproval, ""},
    {"default_permissions", How::kRefused, "permission profiles are written as policies of belljar"},
    {"permissions", How::kRefused, "permission profiles are written as policies of belljar"},
};

std::span<const Meaning> meanings(Dialect dialect) noexcept {
  if (dialect == Dialect::kSrt) return kSrt;
  if (dialect == Dialect::kCodex) return kCodex;
  return kSandboxSettings;
}

const Node* find(const Node& table, std::string_view key) noexcept {
  const auto found = std::ranges::find(table.members, key, &Member::key);
  return found == table.members.end() ? nullptr : &found->value;
}

bool asks_nothing(const Node& node) noexcept {
  return node.kind == Node::Kind::kNull || (node.kind == Node::Kind::kBool && !node.flag) ||
         (node.kind == Node::Kind::kList && node.items.empty()) || (node.kind == Node::Kind::kTable && node.members.empty());
}

class Importer {
 public:
  Importer(policy::Source source, Dialect dialect) : source_(source) { result_.dialect = dialect; }

  Result<void> table(const Node& node, const std::string& prefix);
  void other(const Member& member) { note(member.key, Fate::kOther, "is no setting of a sandbox"); }
  Result<Imported> finish(const std::vector<std::string>& without);

 private:
  Result<void> field(const Meaning& meaning, const Member& member, const std::string& name);
  Result<void> permission(const Meaning& meaning, const Member& member, const std::string& name);
  Result<void> approval(const Member& member, const std::string& name);
  Result<void> domains(const Meaning& meaning, const Member& member, const std::string& name);
  Result<void> upstream(const Meaning& meaning, const Member& member, const std::string& name);
  Result<void> readable(const Member& member, const std::string& name);
  Result<std::vector<std::string>> texts(const Member& member, bool paths) const;
  Result<bool> flag(const Member& member) const;

  Error wrong(const Member& member, std::string_view wanted) const {
    return policy::error_at(source_, member.value.at, format("`{}` is {}", escaped(member.key), policy::describe(member.value)))
        .reason(format("it must be {}", wanted));
  }
  void note(const std::string& name, Fate fate, std::string detail) { result_.fields.push_back({name, fate, std::move(detail)}); }
  void say(std::string_view key, std::string value, const std::string& name) {
    note(name, Fate::kPolicy, format("{} = {}", key, value));
    lines_[std::string(key)] = std::move(value);
  }
  void refuse(const std::string& name, std::string_view why) { note(name, Fate::kRefused, std::string(why)); }
  std::string policy_text() const;

  policy::Source source_;
  Imported result_;
  std::map<std::string, std::string> lines_;  // policy key -> TOML value
};

std::string toml_list(const std::vector<std::string>& texts) {
  std::string list = "[";
  for (const std::string& text : texts) list += (list.size() > 1 ? ", " : "") + policy::json_text(text);
  return list + "]";
}

Result<bool> Importer::flag(const Member& member) const {
  if (member.value.kind != Node::Kind::kBool) return wrong(member, "true or false");
  return member.value.flag;
}

Result<std::vector<std::string>> Importer::texts(const Member& member, bool paths) const {
  if (member.value.kind != Node::Kind::kList) return wrong(member, "a list of text");
  std::vector<std::string> result;
  for (const Node& item : member.value.items) {
    const Node* path = item.kind == Node::Kind::kTable && paths ? find(item, "path") : nullptr;
    const Node& text = path != nullptr ? *path : item;
    if (text.kind != Node::Kind::kText) return wrong(member, "a list of text");
    std::string value = text.text;
    const Node* literal = path != nullptr ? find(item, "literal") : nullptr;
    const bool is_pattern = value.find_first_of("*?[") != std::string::npos;
    if (literal != nullptr && literal->flag && is_pattern)
      return policy::error_at(source_, text.at, format("{} cannot be taken literally", quoted(value)))
          .reason("a policy takes a star for a pattern")
          .next("name the directory it is in");
    if (paths && value.ends_with("/**") && value.size() > 3) value.resize(value.size() - 3);
    result.push_back(std::move(value));
  }
  return result;
}

Result<void> Importer::domains(const Meaning& meaning, const Member& member, const std::string& name) {
  const auto list = BELLJAR_TRY(texts(member, false));
  say(meaning.target, toml_list(list), name);
  // An empty list means none, never all.
  lines_["network.mode"] = list.empty() && !lines_.contains("network.upstream_proxy") ? "\"none\"" : "\"proxy\"";
  if (list.empty()) lines_.erase("network.allowed_domains");
  return {};
}

// The peers hand every host to that proxy unseen; here the list of domains holds before it.
Result<void> Importer::upstream(const Meaning& meaning, const Member& member, const std::string& name) {
  if (member.value.kind != Node::Kind::kInteger || member.value.integer < 1 || member.value.integer > 65535)
    return wrong(member, "a port from 1 to 65535");
  if (lines_.contains("network.upstream_proxy")) refuse(name, "another field names a proxy already");
  else say("network.upstream_proxy", format("\"{}://127.0.0.1:{}\"", meaning.target, member.value.integer), name);
  lines_["network.mode"] = "\"proxy\"";
  return {};
}

Result<void> Importer::readable(const Member& member, const std::string& name) {
  std::string entries = "[";
  for (const std::string& path : BELLJAR_TRY(texts(member, true)))
    entries += format("{}{{path = {}, access = \"read\"}}", entries.size() > 1 ? ", " : "", policy::json_text(path));
  say("filesystem.entries", entries + "]", name);
  return {};
}

Result<void> Importer::permission(const Meaning& meaning, const Member& member, const std::string& name) {
  result_.has_permission = true;
  PermissionSettings& settings = result_.permission;
  if (meaning.target == "excluded_commands") {
    for (const std::string& text : BELLJAR_TRY(texts(member, false))) {
      std::string_view prefix = text;
      if (prefix.ends_with(":*") || prefix.ends_with(" *")) prefix.remove_suffix(2);
      if (!rules_of({.allow = {std::string(prefix)}, .deny = {}}, {})) {
        refuse(name, format("{} is not a command prefix", quoted(text)));
        return {};
      }
      settings.excluded_commands.push_back(text);
    }
  } else {
    bool& target = meaning.target == "auto_allow_bash_if_sandboxed" ? settings.auto_allow_bash_if_sandboxed
                                                                    : settings.allow_unsandboxed_commands;
    target = BELLJAR_TRY(flag(member));
  }
  note(name, Fate::kPermission, std::string(meaning.target));
  return {};
}

Result<void> Importer::approval(const Member& member, const std::string& name) {
  const std::string& text = member.value.text;
  if (text == "untrusted") result_.permission.ask_for_reads = false;
  else if (text == "on-request" || text == "on-failure") result_.permission.auto_allow_bash_if_sandboxed = true;
  else {
    refuse(name, "only untrusted and on-request have a counterpart: asking can be widened here, not switched off");
    return {};
  }
  result_.has_permission = true;
  note(name, Fate::kPermission, text == "untrusted" ? "ask_for_reads = false" : "auto_allow_bash_if_sandboxed = true");
  return {};
}

Result<void> Importer::field(const Meaning& meaning, const Member& member, const std::string& name) {
  switch (meaning.how) {
    case How::kFlag:
      say(meaning.target, BELLJAR_TRY(flag(member)) ? "true" : "false", name);
      return {};
    case How::kTexts:
      say(meaning.target, toml_list(BELLJAR_TRY(texts(member, false))), name);
      return {};
    case How::kPaths:
      say(meaning.target, toml_list(BELLJAR_TRY(texts(member, true))), name);
      return {};
    case How::kReadable:
      return readable(member, name);
    case How::kDomains:
      return domains(meaning, member, name);
    case How::kUpstream:
      return upstream(meaning, member, name);
    case How::kMode:
    case How::kText:
      if (member.value.kind != Node::Kind::kText) return wrong(member, "text");
      say(meaning.target, policy::json_text(member.value.text), name);
      return {};
    case How::kMap: {
      if (member.value.kind != Node::Kind::kTable) return wrong(member, "a table of text");
      std::string value = "{";
      for (const Member& each : member.value.members) {
        if (each.value.kind != Node::Kind::kText) return wrong(each, "text");
        value += format("{}{} = {}", value.size() > 1 ? ", " : "", policy::json_text(each.key), policy::json_text(each.value.text));
      }
      say(meaning.target, value + "}", name);
      return {};
    }
    case How::kNetwork:
      say(meaning.target, BELLJAR_TRY(flag(member)) ? "\"host\"" : "\"none\"", name);
      return {};
    case How::kEnabled:
      result_.permission.sandbox = BELLJAR_TRY(flag(member)) ? SandboxState::kOn : SandboxState::kOff;
      result_.has_permission = true;
      note(name, Fate::kPermission, member.value.flag ? "sandbox = \"on\"" : "sandbox = \"off\"");
      return {};
    case How::kPermission:
      return permission(meaning, member, name);
    case How::kApproval:
      return approval(member, name);
    case How::kOnlyFalse:
      if (asks_nothing(member.value)) note(name, Fate::kNotNeeded, "asks for nothing");
      else refuse(name, meaning.target);
      return {};
    case How::kOnlyTrue:
      if (member.value.kind == Node::Kind::kBool && member.value.flag) note(name, Fate::kNotNeeded, std::string(meaning.target));
      else refuse(name, meaning.target);
      return {};
    case How::kNotNeeded:
      note(name, Fate::kNotNeeded, std::string(meaning.target));
      return {};
    case How::kRefused:
      refuse(name, meaning.target);
      return {};
  }
  return {};
}

Result<void> Importer::table(const Node& node, const std::string& prefix) {
  if (node.kind != Node::Kind::kTable)
    return policy::error_at(source_, node.at, format("`{}` is {}, not a table", escaped(prefix), policy::describe(node)));
  const auto known = meanings(result_.dialect);
  for (const Member& member : node.members) {
    const std::string name = prefix.empty() ? member.key : prefix + "." + member.key;
    const auto found = std::ranges::find(known, name, &Meaning::name);
    const bool is_group = std::ranges::any_of(known, [&](const Meaning& meaning) { return meaning.name.starts_with(name + "."); });
    if (found != known.end()) BELLJAR_CHECK(field(*found, member, name));
    else if (is_group) BELLJAR_CHECK(table(member.value, name));
    else if (result_.dialect == Dialect::kCodex && prefix.empty()) other(member);
    else refuse(name, "is not a field that is known here");
  }
  return {};
}

std::string Importer::policy_text() const {
  std::string text;
  std::string sections;
  std::string open;
  for (const auto& [key, value] : lines_) {
    const std::size_t dot = key.find('.');
    if (dot == std::string::npos) {
      text += format("{} = {}\n", key, value);
      continue;
    }
    if (key.substr(0, dot) != open) sections += format("\n[{}]\n", open = key.substr(0, dot));
    sections += format("{} = {}\n", key.substr(dot + 1), value);
  }
  return text + sections;
}

Result<Imported> Importer::finish(const std::vector<std::string>& without) {
  // srt writes nowhere but where allowWrite says; here the workspace is writable unless the mode says otherwise.
  if (result_.dialect == Dialect::kSrt) lines_["mode"] = "\"read-only\"";
  std::string refused;
  for (const Field& field : result_.fields) {
    if (field.fate != Fate::kRefused || std::ranges::find(without, field.name) != without.end()) continue;
    refused += format("{}`{}`: {}", refused.empty() ? "" : "; ", escaped(field.name), field.detail);
  }
  if (!refused.empty()) {
    return Error(Code::kUnimplemented, format("cannot import {}", quoted(source_.file)))
        .reason(std::move(refused))
        .next("take the field out, or give it up by name: --without FIELD");
  }
  result_.policy = policy_text();
  auto parsed = policy::parse_toml(result_.policy, source_.file, "import");
  if (!parsed) {
    return Error(Code::kInvalidArgument,
                 format("cannot import {}: a value is not one that a policy may hold", quoted(source_.file)))
        .reason(parsed.error().line())
        .next("mend the value");
  }
  return std::move(result_);
}

bool is_srt(const Node& root) noexcept {
  const Node* files = find(root, "filesystem");
  return find(root, "enabled") == nullptr && find(root, "network") != nullptr && files != nullptr &&
         find(*files, "denyRead") != nullptr;
}

}  // namespace

std::string_view to_string(Dialect dialect) noexcept {
  return dialect == Dialect::kSrt ? "srt settings" : dialect == Dialect::kCodex ? "Codex config.toml" : "SandboxSettings";
}

std::string_view to_string(Field::Fate fate) noexcept {
  constexpr std::string_view kNames[] = {"policy", "permission", "not needed", "refused", "other"};
  return kNames[static_cast<std::size_t>(fate)];
}

std::string to_toml(const PermissionSettings& settings) {
  constexpr std::string_view kModes[] = {"default", "auto-edit", "plan", "yolo"};
  return format(
      "[permission]\nmode = \"{}\"\nsandbox = \"{}\"\nauto_allow_bash_if_sandboxed = {}\nallow_unsandboxed_commands = "
      "{}\nexcluded_commands = {}\nask_for_reads = {}\n",
      kModes[static_cast<std::size_t>(settings.mode)], settings.sandbox == SandboxState::kOff ? "off" : "on",
      settings.auto_allow_bash_if_sandboxed, settings.allow_unsandboxed_commands, toml_list(settings.excluded_commands),
      settings.ask_for_reads);
}

Result<Imported> import_settings(std::string_view text, std::string_view file, const std::vector<std::string>& without) {
  const policy::Source source{text, file};
  BELLJAR_CHECK(policy::check_text(source));
  if (file.ends_with(".toml")) {
    Importer importer(source, Dialect::kCodex);
    BELLJAR_CHECK(importer.table(BELLJAR_TRY(policy::parse_toml_document(source)), ""));
    return importer.finish(without);
  }
  const Node root = BELLJAR_TRY(policy::parse_json_document(source));
  if (root.kind != Node::Kind::kTable) return policy::error_at(source, root.at, "the settings are not a table");
  // A whole settings file: the rest of it concerns other things.
  const Node* sandbox = find(root, "sandbox");
  if (sandbox == nullptr && is_srt(root)) {
    Importer importer(source, Dialect::kSrt);
    BELLJAR_CHECK(importer.table(root, ""));
    return importer.finish(without);
  }
  Importer importer(source, Dialect::kSandboxSettings);
  if (sandbox != nullptr) {
    for (const Member& member : root.members) {
      if (member.key != "sandbox") importer.other(member);
    }
  }
  BELLJAR_CHECK(importer.table(sandbox != nullptr ? *sandbox : root, ""));
  return importer.finish(without);
}

}  // namespace belljar::guard
