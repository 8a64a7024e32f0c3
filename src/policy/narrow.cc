// What a file inside the workspace may say. The command can write that file, so it may take away and never
// give.
//
// Each key says in the schema in which direction it narrows, and a key without one may only repeat the value
// in force. An unset limit counts as unlimited, or as zero where unset means none. An explicit empty list
// clears a grant, which narrows, but it would clear refusals as well, so lists of refusals may not be empty.
//
// Variables are the weak place. Most programs can be steered by some variable, so names are refused by a long
// list of patterns, and what is left may not change a value that another layer has set.
#include "policy/narrow.h"

#include <algorithm>

#include "base/format.h"
#include "policy/defaults.h"
#include "policy/domains.h"
#include "policy/paths.h"
#include "policy/protected.h"
#include "policy/schema.h"

namespace belljar::policy {
namespace {

// Patterns, any case. Code loaded by the dynamic linker, shells and interpreters (CVE-2021-21261 and its kind), git's hooks into
// everything, and variables that send an agent's requests elsewhere (CVE-2026-21852 took an API key that way).
constexpr std::string_view kSteering[] = {"LD_*",        "DYLD_*",      "GCONV_PATH", "GLIBC_TUNABLES",
                                          "MALLOC_*",    "LOCPATH",     "NLSPATH",    "BASH_*",
                                          "ENV",         "SHELLOPTS",   "BASHOPTS",   "PROMPT_*",
                                          "PS[0-4]",     "PS?",         "IFS",        "CDPATH",
                                          "PATH",        "HOME",        "USER",       "LOGNAME",
                                          "SHELL",       "TMPDIR",      "TMP",        "TEMP",
                                          "XDG_*",       "*_HOME",      "*_ROOT",     "GIT_*",
                                          "SSH_*",       "GPG_*",       "NODE_*",     "NPM_*",
                                          "YARN_*",      "PNPM_*",      "BUN_*",      "DENO_*",
                                          "PYTHON*",     "PIP_*",       "UV_*",       "VIRTUAL_ENV",
                                          "CONDA_*",     "PERL*",       "RUBY*",      "GEM_*",
                                          "BUNDLE_*",    "LUA_*",       "PHP*",       "JAVA_*",
                                          "JDK_*",       "_JAVA_*",     "CLASSPATH",  "MAVEN_*",
                                          "GRADLE_*",    "CARGO*",      "RUST*",      "GO*",
                                          "CGO_*",       "CC",          "CXX",        "CPP",
                                          "LD",          "AR",          "*FLAGS",     "MAKEFLAGS",
                                          "MAKEFILES",   "EDITOR",      "VISUAL",     "*PAGER*",
                                          "BROWSER",     "LESS*",       "MAN*",       "*_COMMAND",
                                          "*_PROXY",     "*_URL",       "*_URI",      "*_HOST",
                                          "*_ENDPOINT*", "*_BASE*",     "*REGISTRY*", "*_INDEX*",
                                          "*_CONFIG*",   "*_OPTS",      "*_OPTIONS",  "*_CERT*",
                                          "*_CA_*",      "*_CAINFO",    "*_BUNDLE",   "SSL_*",
                                          "CURL_*",      "REQUESTS_*",  "DOCKER_*",   "KUBECONFIG",
                                          "AWS_*",       "AZURE_*",     "GOOGLE_*",   "CLAUDE_*",
                                          "CODEX_*",     "ANTHROPIC_*", "OPENAI_*",   "GEMINI_*",
                                          "BELLJAR_*",   "DBUS_*",      "DISPLAY",    "WAYLAND_*",
                                          "QT_*",        "GTK_*",       "GIO_*",      "*_PRELOAD",
                                          "*_PLUGIN*",   "*_MODULE*",   "*_PATH",     "LIBPATH",
                                          "SHLIB_PATH",  "TERMINFO*",   "TERMCAP",    "HOSTALIASES",
                                          "RES_OPTIONS", "LOCALDOMAIN", "NSS_*",      "KRB5*",
                                          "*INIT*",      "*RC",         "*STARTUP*",  "*_SHELL",
                                          "ZDOTDIR",     "FPATH",       "*_ADDR*",    "*_SERVER*",
                                          "*_API",       "*_PROFILE*",  "*_CONF",     "*PATH",
                                          "*_RSH",       "*_SSH",       "*_ADDOPTS",  "*_LAUNCHER",
                                          "*_FILE",      "*_FILENAMES", "*LOGFILE",   "*_LIBS",
                                          "*_DIR",       "TZDIR",       "*_OPT",      "*OPT",
                                          "MAKE",        "CMAKE_*",     "GHC*",       "ELECTRON_*",
                                          "*_RUNTIME",   "WINE*"};

constexpr std::string_view kWhere =
    "say it in your own policy file or on the command line; a file that the command can write must not open anything";

constexpr std::string_view kElsewhere =
    "commands can write to files in the workspace: move it to ~/.config/belljar, which they cannot, and name it there with "
    "--policy";

Error widens(const Setting& setting, const std::string& wanted, const std::string& in_force) {
  // It was named on the command line, and lies where commands write all the same.
  const bool is_named = setting.origin.layer == "policy";
  return Error(Code::kPermissionDenied, format("{}: a {} may not widen `{}`", to_string(setting.origin),
                                               is_named ? "policy in the workspace" : "project file", setting.key->name))
      .reason(format("it asks for {}, and {} is in force", wanted, in_force))
      .next(std::string(is_named ? kElsewhere : kWhere));
}

std::size_t rank(std::string_view values, std::string_view name) noexcept {
  std::size_t index = 0;
  while (!values.empty()) {
    const std::size_t bar = values.find('|');
    if (values.substr(0, bar) == name) return index;
    values = bar == std::string_view::npos ? std::string_view() : values.substr(bar + 1);
    ++index;
  }
  return index;
}

Result<void> check_stricter(const Setting& setting, const std::optional<Value>& now) {
  const std::string wanted = to_toml(setting.value);
  if (const bool* flag = std::get_if<bool>(&setting.value)) {
    if (*flag == setting.key->strict || (now && *now == setting.value)) return {};
    return widens(setting, wanted, now ? to_toml(*now) : "the default");
  }
  const std::string values(setting.key->values);
  // Unset: who starts it decides, and may have decided for the narrowest.
  const std::size_t in_force = now ? rank(values, std::get<std::string>(*now)) : 0;
  if (rank(values, std::get<std::string>(setting.value)) <= in_force) return {};
  return widens(setting, wanted, now ? to_toml(*now) : "the default");
}

// Both hold the same kind of number.
bool at_most(const Value& a, const Value& b) {
  return std::visit(
      [&b](const auto& left) {
        using Alternative = std::remove_cvref_t<decltype(left)>;
        if constexpr (requires { left <= left; }) {
          const auto* right = std::get_if<Alternative>(&b);
          return right != nullptr && left <= *right;
        } else {
          return false;
        }
      },
      a);
}

Result<void> check_lower(const Setting& setting, const std::optional<Value>& now, bool unset_is_zero) {
  if (!now && !unset_is_zero) return {};
  if (now && at_most(setting.value, *now)) return {};
  return widens(setting, to_toml(setting.value), now ? to_toml(*now) : "none");
}

// An element is granted when the list holds it; for domains, when a pattern of the list covers it.
bool granted(const Key& key, const std::string& wanted, const std::vector<std::string>& list) {
  return std::ranges::any_of(list, [&](const std::string& have) {
    if (key.name == "network.allowed_domains") return domain_covers(have, wanted);
    if (key.name == "environment.include")
      return have == wanted || (wanted.find_first_of("*?") == std::string::npos && name_match(have, wanted));
    if (key.type == Type::kPaths) return is_within(wanted, have);
    return have == wanted;
  });
}

// `include = ["PATH"]` grants nothing when `inherit` passes it anyway.
bool inherited(const Environment& environment, std::string_view name) {
  if (environment.inherit == Inherit::kAll) return true;
  if (environment.inherit == Inherit::kNone) return false;
  return std::ranges::any_of(core_variables(), [name](std::string_view core) {
    return core == name || (name.find_first_of("*?") == std::string_view::npos && name_match(core, name));
  });
}

Result<void> check_subset(const Setting& setting, const std::optional<Value>& now, const Policy& in_force) {
  if (const auto* wanted = std::get_if<std::vector<std::string>>(&setting.value)) {
    const auto& have = std::get<std::vector<std::string>>(*now);
    for (const std::string& element : *wanted) {
      if (setting.key->name == "environment.include" && inherited(in_force.environment, element)) continue;
      if (!granted(*setting.key, element, have)) return widens(setting, quoted(element), to_toml(*now));
    }
  } else if (const auto* ports = std::get_if<std::vector<PortPair>>(&setting.value)) {
    const auto& have = std::get<std::vector<PortPair>>(*now);
    for (const PortPair& port : *ports) {
      if (std::ranges::find(have, port) == have.end()) return widens(setting, to_string(port), to_toml(*now));
    }
  } else if (const auto* volumes = std::get_if<std::vector<Volume>>(&setting.value)) {
    const auto& have = std::get<std::vector<Volume>>(*now);
    for (const Volume& volume : *volumes) {
      const bool known = std::ranges::any_of(have, [&](const Volume& other) {
        return other.source == volume.source && other.target == volume.target && (volume.readonly || !other.readonly);
      });
      if (!known) return widens(setting, quoted(volume.source), to_toml(*now));
    }
  }
  return {};
}

// Refusals may only grow: an explicit empty list would clear them.
Result<void> check_more(const Setting& setting, const std::optional<Value>& now) {
  const auto& wanted = std::get<std::vector<std::string>>(setting.value);
  if (!wanted.empty() || std::get<std::vector<std::string>>(*now).empty()) return {};
  return widens(setting, "[]", to_toml(*now));
}

// An entry that spells out a protected name lifts its protection (filesystem.protect), so in a project file it opens something
// though the path is writable already. `rule` is what holds the path now: what it spells out itself is granted.
bool lifts_protection(std::string_view path, const FsEntry& rule) noexcept {
  std::string_view below = rule.glob ? path : path.substr(std::min(path.size(), rule.path.size()));
  while (!below.empty()) {
    const std::string_view part = below.substr(0, below.find('/'));
    if (protected_length(below) > 0 || is_protected_parent(part)) return true;
    below.remove_prefix(std::min(below.size(), part.size() + 1));
  }
  return false;
}

Result<void> check_entries(const Setting& setting, const Policy& in_force) {
  const auto& wanted = std::get<std::vector<FsEntry>>(setting.value);
  if (wanted.empty() && setting.key->name != "filesystem.writable_roots") {
    // Clearing a list of rules may take away a refusal.
    const bool clears =
        std::ranges::any_of(in_force.filesystem.entries, [](const FsEntry& entry) { return entry.access != Access::kWrite; });
    if (clears) return widens(setting, "[]", "a list of rules");
  }
  for (const FsEntry& entry : wanted) {
    if (entry.access == Access::kNone) continue;
    Setting here = setting;
    here.origin = entry.origin;
    if (entry.glob)
      return widens(here, format("{} for the pattern {}", to_string(entry.access), quoted(entry.path)), "whatever each path has");
    const FsEntry* rule = find_rule(in_force.filesystem, entry.path);
    const Access now = rule == nullptr ? Access::kNone : rule->access;
    if (now == Access::kNone || (entry.access == Access::kWrite && now != Access::kWrite)) {
      return widens(here, format("{} for {}", to_string(entry.access), quoted(entry.path)), format("{}", to_string(now)));
    }
    if (entry.access == Access::kWrite && in_force.filesystem.protect != Protect::kNone && lifts_protection(entry.path, *rule))
      return widens(here, format("write for the protected name {}", quoted(entry.path)), "reading");
  }
  return {};
}

Result<void> check_variables(const Setting& setting, const Policy& in_force) {
  const auto& wanted = std::get<std::map<std::string, std::string>>(setting.value);
  const auto& have = in_force.environment.set;
  if (wanted.empty() && !have.empty()) return widens(setting, "{}", "a table of variables");
  for (const auto& [name, text] : wanted) {
    const auto found = have.find(name);
    if (found != have.end() && found->second == text) continue;
    if (found != have.end()) return widens(setting, quoted(name), "another value of it");
    if (is_steering_variable(name))
      return widens(setting, quoted(name), "no such variable (it can make programs load code or talk to another host)");
  }
  return {};
}

}  // namespace

bool is_steering_variable(std::string_view name) noexcept {
  return std::ranges::any_of(kSteering, [name](std::string_view pattern) { return name_match(pattern, name); });
}

Result<void> check_narrows(const Setting& setting, const Policy& in_force) {
  const Key& key = *setting.key;
  const std::optional<Value> now = key.join == Join::kEntries ? std::nullopt : load(key, in_force);
  switch (key.narrow) {
    case Narrow::kNever:
      if (now && *now == setting.value) return {};
      if (key.name == "commands.allow")
        return widens(setting, "", "")
            .reason("what it lists would run without a question")
            .next("say with `commands.deny` what must not run, or write the list into your own policy file");
      return widens(setting, to_toml(setting.value), now ? to_toml(*now) : "nothing");
    case Narrow::kStricter:
      return check_stricter(setting, now);
    case Narrow::kLower:
      return check_lower(setting, now, false);
    case Narrow::kLowerOrSet:
      return check_lower(setting, now, true);
    case Narrow::kSubset:
      return check_subset(setting, now, in_force);
    case Narrow::kMore:
      return check_more(setting, now);
    case Narrow::kEntries:
      return check_entries(setting, in_force);
    case Narrow::kVariables:
      return check_variables(setting, in_force);
  }
  return widens(setting, to_toml(setting.value), "another value");
}

}  // namespace belljar::policy
