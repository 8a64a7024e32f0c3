#include "guard/foreign.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "guard/permission.h"
#include "guard/permission_settings.h"
#include "guard/rules.h"
#include "policy/document.h"
#include "policy/json.h"
#include "policy/parse.h"
#include "policy/paths.h"

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
  kReadable,    // a list of paths that are readable again inside of hidden ones
  kEnabled,     // the sandbox itself
  kPermission,  // auto_allow_bash_if_sandboxed
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

constexpr std::string_view kWorkspaceWrite = "sandbox_workspace_write.";
constexpr std::string_view kMac = "concerns macOS, which this build does not serve";
constexpr std::string_view kOwn = "belljar starts no helper programs";
constexpr std::string_view kNoChain = "write another proxy as network.upstream_proxy in a policy; hosts stay judged here";
constexpr std::string_view kNoCredentials = "name credentials under network.credentials of a policy instead";
constexpr std::string_view kNoTls =
    "TLS is looked into where a rule or a credential needs it: network.allowed_requests, network.credentials";
constexpr std::string_view kNothingOutside =
    "nothing that an agent calls runs outside of the sandbox; open what such commands need: network.allow_unix_sockets, "
    "filesystem.writable_roots";
constexpr std::string_view kUnknown = "is not a field that is known here";
constexpr std::string_view kOpensNoHost =
    "it keeps refusals out of reports and opens no host; network.allowed_domains does (`--net proxy --allow-domain HOST`), and "
    "network.host_ports a port of this machine";
constexpr std::string_view kCodexProxy =
    "its proxy is another: write network.mode = \"proxy\" and the hosts under network.allowed_domains in a policy";

// SandboxSettings, as documents and SDKs of Blade and Claude spell it.
constexpr Meaning kSandboxSettings[] = {
    {"enabled", How::kEnabled, ""},
    {"autoAllowBashIfSandboxed", How::kPermission, "auto_allow_bash_if_sandboxed"},
    {"excludedCommands", How::kOnlyFalse, kNothingOutside},
    {"allowUnsandboxedCommands", How::kOnlyFalse, kNothingOutside},
    {"failIfUnavailable", How::kOnlyTrue, "what a policy asks and this machine cannot hold is always an error"},
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
    {"filesystem.allowRead", How::kReadable, ""},
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
    {"filesystem.allowRead", How::kReadable, ""},
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
    {"shell_environment_policy.experimental_use_profile", How::kOnlyFalse, "a login shell is asked for by `run --login`"},
    {"shell_environment_policy.ignore_default_excludes", How::kOnlyFalse,
     "variables that look like secrets stay out; name the ones that are needed under environment.pass"},
    // The proxy of Codex' own is what narrows network_access: without it the import would open more than the file does.
    {"features.network_proxy", How::kOnlyFalse, kCodexProxy},
    {"network", How::kRefused, kCodexProxy},
    {"experimental_network", How::kRefused, kCodexProxy},
    {"approval_policy", How::kApproval, ""},
    {"profile", How::kNotNeeded, "its sandbox_mode and approval_policy are taken for those of the file"},
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
  Result<void> apply_profile(Node& root);
  Result<void> rules_of_tools(const Node& permissions);
  Result<void> permission_mode(const Member& member, const std::string& name);
  void other(const std::string& name) { note(name, Fate::kOther, "is no setting of a sandbox"); }
  Result<Imported> finish(const std::vector<std::string>& without);

 private:
  Result<void> field(const Meaning& meaning, const Member& member, const std::string& name);
  Result<void> permission(const Meaning& meaning, const Member& member, const std::string& name);
  Result<void> approval(const Member& member, const std::string& name);
  Result<void> domains(const Meaning& meaning, const Member& member, const std::string& name);
  Result<void> upstream(const Meaning& meaning, const Member& member, const std::string& name);
  Result<void> readable(const Member& member, const std::string& name);
  void deny_rule(std::string_view rule);
  void add_paths(std::string_view key, const std::vector<std::string>& paths, const std::string& name);
  void refuse_holes();
  void settle_codex_mode();
  void settle_off();
  void settle_upstream();
  void settle_permission_mode(const std::vector<std::string>& without);
  Result<void> check_values() const;
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
    places_[std::string(key)] = at_;
  }
  void refuse(const std::string& name, std::string_view why) { note(name, Fate::kRefused, std::string(why)); }
  std::string policy_text() const;

  policy::Source source_;
  Imported result_;
  std::map<std::string, std::string> lines_;        // policy key -> TOML value
  std::map<std::string, policy::Position> places_;  // of the fields they come from
  policy::Position at_;                             // of the field that is read
  std::map<std::string, std::vector<std::string>, std::less<>> paths_;
  std::map<std::string, std::optional<PermissionMode>> modes_;  // by the field that says it; nothing: it has no counterpart
  std::map<std::string, std::string> proxies_;                  // field -> URL
  bool is_on_ = false;                                          // `enabled`
  std::vector<std::string> holes_;                              // paths that are to be readable inside of hidden ones
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
  proxies_[name] = format("\"{}://127.0.0.1:{}\"", meaning.target, member.value.integer);
  say("network.upstream_proxy", proxies_[name], name);
  lines_["network.mode"] = "\"proxy\"";
  return {};
}

// Two ports are two doors to what the user runs there; one of them carries everything.
void Importer::settle_upstream() {
  constexpr std::string_view kHttp = "network.httpProxyPort", kSocks = "network.socksProxyPort";
  if (proxies_.size() < 2) return;
  lines_["network.upstream_proxy"] = proxies_[std::string(kHttp)];
  for (Field& field : result_.fields) {
    if (field.name != kSocks) continue;
    field.fate = Fate::kNotNeeded;
    field.detail = format("everything leaves by {}: what is not HTTP by CONNECT", kHttp);
  }
}

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
    const bool is_dropped = field.fate == Fate::kPolicy || field.name == "autoAllowBashIfSandboxed" ||
                            (field.fate == Fate::kRefused && field.detail != kUnknown);
    if (is_mode || !is_dropped) continue;
    field.fate = Fate::kNotNeeded;
    field.detail = "counts only with `enabled`: true";
  }
}

// Several fields may fill one list: denyRead and rules Read(...).
void Importer::add_paths(std::string_view key, const std::vector<std::string>& paths, const std::string& name) {
  auto& list = paths_[std::string(key)];
  list.insert(list.end(), paths.begin(), paths.end());
  say(key, toml_list(list), name);
}

// Not access = "read": that would make a writable place read-only. Whether it lies in a hidden one is known at the end.
Result<void> Importer::readable(const Member& member, const std::string& name) {
  holes_ = BELLJAR_TRY(texts(member, true));
  note(name, Fate::kNotNeeded, "what denyRead does not hide can be read anyway");
  return {};
}

// "./a/" and "a" are one path.
std::string_view plain(std::string_view path) noexcept {
  if (path.starts_with("./")) path.remove_prefix(2);
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path.empty() ? "." : path;
}

// Where a home and a workspace lie is not known here. These may hold both: a home, what homes lie in, and what lies below such a
// place.
bool may_hold_homes(std::string_view path) noexcept {
  if (path == "~" || path == "/" || path == "/var" || path == "/export") return true;
  return std::ranges::any_of(std::array{"/home", "/root", "/Users", "/var/home", "/export/home"},
                             [&](std::string_view homes) { return policy::is_within(path, homes); });
}

// Whether `hole` may lie in `hidden`, as far as their texts tell.
bool may_lie_in(std::string_view hole, std::string_view hidden) noexcept {
  constexpr auto kind = [](std::string_view path) { return path[0] == '/' || path[0] == '~' ? path[0] : '.'; };
  // A pattern of the workspace is about names in it, so the workspace itself is none of them.
  if (hidden.find_first_of("*?[") != std::string_view::npos) return hole != "." || kind(hidden) != '.' || hidden.starts_with("**");
  if (kind(hole) == kind(hidden)) return hidden == "." || policy::is_within(hole, hidden);
  return may_hold_homes(hidden) && (kind(hole) != '/' || may_hold_homes(hole));
}

void Importer::refuse_holes() {
  const auto list = paths_.find("filesystem.blocked_paths");
  if (list == paths_.end()) return;
  for (Field& field : result_.fields) {
    if (field.name != "filesystem.allowRead") continue;
    for (const std::string& hole : holes_) {
      const auto hidden =
          std::ranges::find_if(list->second, [&](const auto& path) { return may_lie_in(plain(hole), plain(path)); });
      if (hidden == list->second.end()) continue;
      field.fate = Fate::kRefused;
      field.detail = format("{} may lie in {}, and what is hidden has no readable places in it; hide what is beside it",
                            quoted(hole), quoted(*hidden));
    }
  }
}

// A file without a mode means what Codex does where nobody trusts the project; and it reads that table in one mode only.
void Importer::settle_codex_mode() {
  if (result_.dialect != Dialect::kCodex) return;
  if (!lines_.contains("mode")) {
    note("sandbox_mode", Fate::kPolicy, "mode = \"read-only\": it is absent, and so Codex has it for a project that nobody trusts");
    lines_["mode"] = "\"read-only\"";
  }
  if (lines_["mode"] == "\"workspace-write\"") return;
  for (Field& field : result_.fields) {
    const auto meaning = std::ranges::find(kCodex, field.name, &Meaning::name);
    if (!field.name.starts_with(kWorkspaceWrite) || meaning == std::end(kCodex)) continue;
    lines_.erase(std::string(meaning->target));
    field.fate = Fate::kNotNeeded;
    field.detail = "counts only with sandbox_mode = \"workspace-write\"";
  }
}

// The profile that is chosen comes before the file's own words.
Result<void> Importer::apply_profile(Node& root) {
  const auto chosen = std::ranges::find(root.members, "profile", &Member::key);
  if (chosen == root.members.end()) return {};
  if (chosen->value.kind != Node::Kind::kText) return wrong(*chosen, "text");
  const std::string name = "profiles." + chosen->value.text;
  const Node* profiles = find(root, "profiles");
  const Node* profile = profiles != nullptr ? find(*profiles, chosen->value.text) : nullptr;
  if (profile == nullptr) {
    refuse("profile", format("there is no [{}]", escaped(name)));
    root.members.erase(chosen);
    return {};
  }
  for (const Member& member : std::vector<Member>(profile->members)) {
    if (member.key == "sandbox_mode" || member.key == "approval_policy") {
      std::erase_if(root.members, [&](const Member& own) { return own.key == member.key; });
      root.members.push_back(member);
    } else if (std::ranges::any_of(kCodex, [&](const Meaning& known) {
                 return known.name == member.key || known.name.starts_with(member.key + ".");
               })) {
      refuse(name + "." + member.key, "is not taken from a profile; write it for the whole file");
    }
  }
  return {};
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
  if (!reads && tool != "Edit" && tool != "Write") return note(name, Fate::kOther, "keeps no path from a command");
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

Result<void> Importer::permission(const Meaning& meaning, const Member& member, const std::string& name) {
  result_.has_permission = true;
  result_.permission.auto_allow_bash_if_sandboxed = BELLJAR_TRY(flag(member));
  note(name, Fate::kPermission, std::string(meaning.target));
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
    note(name, Fate::kOther, "has no counterpart; the mode stays `default`");
    return {};
  }
  modes_[name] = found->second;
  note(name, Fate::kPermission, format("mode = \"{}\"", to_string(found->second)));
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
      field.fate = Fate::kRefused;
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

Result<void> Importer::approval(const Member& member, const std::string& name) {
  const std::string& text = member.value.text;
  if (text == "untrusted") result_.permission.ask_for_reads = false;
  else if (text == "on-request" || text == "on-failure") result_.permission.auto_allow_bash_if_sandboxed = true;
  else {
    refuse(name, "only untrusted, on-request and on-failure have a counterpart: asking can be widened here, not switched off");
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
      if (meaning.target == "ignore_violations.network" && !member.value.items.empty()) result_.fields.back().note = kOpensNoHost;
      return {};
    case How::kPaths:
      add_paths(meaning.target, BELLJAR_TRY(texts(member, true)), name);
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
      is_on_ = BELLJAR_TRY(flag(member));
      result_.has_permission = true;
      note(name, Fate::kPermission, is_on_ ? "sandbox = \"on\"" : "mode = \"danger-full-access\"");
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
    return policy::error_at(
        source_, node.at, format("`{}` is {}, not a table", prefix.empty() ? "sandbox" : escaped(prefix), policy::describe(node)));
  const auto known = meanings(result_.dialect);
  for (const Member& member : node.members) {
    const std::string name = prefix.empty() ? member.key : prefix + "." + member.key;
    const auto found = std::ranges::find(known, name, &Meaning::name);
    const bool is_group = std::ranges::any_of(known, [&](const Meaning& meaning) { return meaning.name.starts_with(name + "."); });
    at_ = member.value.at;
    if (found != known.end()) BELLJAR_CHECK(field(*found, member, name));
    else if (is_group) BELLJAR_CHECK(table(member.value, name));
    else if (result_.dialect == Dialect::kCodex && (prefix.empty() || prefix == "features")) other(name);
    else refuse(name, kUnknown);
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

// Each value by itself, so that an error names the place in the file that was given, not one in a text that nobody wrote.
Result<void> Importer::check_values() const {
  for (const auto& [key, value] : lines_) {
    auto parsed = policy::parse_toml(format("{} = {}\n", key, value), "policy", "import");
    if (parsed) continue;
    const std::string& what = parsed.error().what();
    const std::size_t behind = what.find(": ");  // "policy:1:2: ..."
    const auto at = places_.find(key);
    return policy::error_at(source_, at == places_.end() ? policy::Position() : at->second,
                            behind == std::string::npos ? what : what.substr(behind + 2))
        .reason(parsed.error().reason())
        .next(parsed.error().next());
  }
  return {};
}

Result<Imported> Importer::finish(const std::vector<std::string>& without) {
  // srt writes nowhere but where allowWrite says; here the workspace is writable unless the mode says otherwise.
  if (result_.dialect == Dialect::kSrt) lines_["mode"] = "\"read-only\"";
  refuse_holes();
  settle_codex_mode();
  settle_upstream();
  settle_off();
  settle_permission_mode(without);
  for (const std::string& name : without) {
    const bool is_refused =
        std::ranges::any_of(result_.fields, [&](const Field& field) { return field.name == name && field.fate == Fate::kRefused; });
    if (!is_refused)
      return Error(Code::kInvalidArgument, format("--without {} gives up nothing", quoted(name)))
          .reason(format("no field of that name in {} is refused", quoted(source_.file)))
          .next("leave it out");
  }
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
  BELLJAR_CHECK(check_values());
  result_.policy = policy_text();
  BELLJAR_CHECK(policy::parse_toml(result_.policy, source_.file, "import"));
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

std::string to_policy_file(const Imported& imported) {
  if (!imported.has_permission) return imported.policy;
  const PermissionSettings& settings = imported.permission;
  return format("{}\n[permission]\nmode = \"{}\"\nauto_allow_bash_if_sandboxed = {}\nask_for_reads = {}\n", imported.policy,
                to_string(settings.mode), settings.auto_allow_bash_if_sandboxed, settings.ask_for_reads);
}

Result<Imported> import_settings(std::string_view text, std::string_view file, const std::vector<std::string>& without) {
  const policy::Source source{text, file};
  BELLJAR_CHECK(policy::check_text(source));
  if (file.ends_with(".toml")) {
    Importer importer(source, Dialect::kCodex);
    Node root = BELLJAR_TRY(policy::parse_toml_document(source));
    BELLJAR_CHECK(importer.apply_profile(root));
    BELLJAR_CHECK(importer.table(root, ""));
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
  if (sandbox == nullptr && find(root, "enabled") == nullptr)
    return Error(Code::kInvalidArgument, format("{} does not say whether there is a sandbox", quoted(file)))
        .reason(
            "Blade and Claude have none unless `enabled` is true; srt has one always, and its settings hold `network` and "
            "`filesystem.denyRead`")
        .next("write \"enabled\": true or false into it");
  Importer importer(source, Dialect::kSandboxSettings);
  if (sandbox != nullptr) {
    for (const Member& member : root.members) {
      if (member.key == "permissions") BELLJAR_CHECK(importer.rules_of_tools(member.value));
      else if (member.key == "permissionMode") BELLJAR_CHECK(importer.permission_mode(member, member.key));
      else if (member.key != "sandbox") importer.other(member.key);
    }
  }
  BELLJAR_CHECK(importer.table(sandbox != nullptr ? *sandbox : root, ""));
  return importer.finish(without);
}

}  // namespace belljar::guard
