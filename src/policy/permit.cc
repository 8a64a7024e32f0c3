// What would permit an act that was refused: the flag, the line for a policy, and what it risks.
//
// The answer must work if it is followed, so each kind of refusal is traced to the rule that decided. Where
// no grant outweighs that rule (a hidden place, a name that is a mount, a pattern), the answer is to change
// the rule itself, or to do this one act outside the sandbox.
#include "policy/permit.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/format.h"
#include "base/paths.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "policy/agents.h"
#include "policy/defaults.h"
#include "policy/host.h"
#include "policy/paths.h"
#include "policy/profiles.h"
#include "policy/protected.h"
#include "policy/refusal.h"
#include "policy/schema.h"

namespace belljar::policy {
namespace {

// Without the value that a key's text begins with ("none: a later git ..."): it is the one that is granted, and as an answer to
// "what does it risk" it would read as nothing.
std::string_view risk_of(const Key& key) {
  const std::size_t colon = key.risk.find(": ");
  const bool value = colon != std::string_view::npos &&
                     format("|{}|", key.values).find(format("|{}|", key.risk.substr(0, colon))) != std::string::npos;
  return value ? key.risk.substr(colon + 2) : key.risk;
}

std::string_view risk_of(std::string_view name) {
  const Key* key = find_key(name);
  return key == nullptr ? std::string_view() : risk_of(*key);
}

// Text that TOML can hold and a person can read; others are named by the flag alone.
bool is_text(std::string_view text) { return escaped(text) == text; }

// A grant of one path by a list key.
Permit grant_path(std::string_view name, const std::string& path) {
  const Key& key = *find_key(name);
  Permit permit;
  permit.flag = format("{} {}", key.flag, shell_word(path));
  if (is_text(path)) permit.line = format("{} = {}", name, to_toml(std::vector<std::string>{path}));
  permit.risk = std::string(risk_of(key));
  return permit;
}

Permit grant_value(std::string_view name, std::string_view flag_value, const Value& value) {
  const Key& key = *find_key(name);
  Permit permit;
  if (!key.flag.empty()) permit.flag = format("{}{}{}", key.flag, flag_value.empty() ? "" : " ", flag_value);
  permit.line = format("{} = {}", name, to_toml(value));
  permit.risk = std::string(risk_of(key));
  return permit;
}

// A name is made, moved or removed in its directory; content and attributes change at the name itself.
bool changes_directory(std::string_view operation) {
  constexpr std::string_view kActs[] = {"create", "mkdir", "mknod", "symlink", "link", "rename", "delete"};
  return std::ranges::any_of(kActs, [&](std::string_view act) { return operation == act; });
}

bool reads(std::string_view operation) { return operation == "read"; }

// Built into the program: there is no such file to change.
bool is_shipped(const Origin& origin) {
  return origin.file == origin.layer + ".toml" &&
         std::ranges::find(embedded_profiles(), origin.layer, &EmbeddedProfile::name) != embedded_profiles().end();
}

std::string where(const Origin& origin) {
  if (is_shipped(origin)) return format("the rule of the built-in profile {}", origin.layer);
  return origin.file.empty() ? format("the rule ({})", to_string(origin))
                             : format("line {} of {}", origin.line, escaped(origin.file));
}

// The flag that set it, which no second one of that name outweighs; empty: it was none.
std::string flag_of(const Origin& origin) {
  constexpr std::string_view kFlag = "flag ";
  return origin.layer.starts_with(kFlag) ? escaped(origin.layer.substr(kFlag.size())) : std::string();
}

// No grant for the path outweighs what refused it: a rule hides it (of two for one path the stricter holds, and below a hidden
// directory nothing can be opened), keeps the very name or what lies below it, or is a pattern.
bool stands(const Violation& violation) {
  if (violation.rule != "filesystem.entries") return false;
  if (violation.errnum == EBUSY) return true;
  if (violation.allowed == kKeptByRule) return changes_directory(violation.operation);
  return violation.allowed == kHiddenByRule ||
         (violation.allowed.starts_with("nothing below ") && !violation.allowed.starts_with("nothing below /:"));
}

// The rule itself.
Permit permit_by_rule(const Violation& violation) {
  Permit permit;
  const Origin& origin = violation.origin;
  if (!origin.file.empty() && !is_shipped(origin)) permit.step = format("change or remove {}", where(origin));
  else if (const std::string flag = flag_of(origin); !flag.empty()) permit.step = format("leave out or change {}", flag);
  permit.note = is_shipped(origin)    ? format("it is {}: make this one change yourself, outside", where(origin))
                : permit.step.empty() ? "it is part of the sandbox: make this one change yourself, outside"
                                      : "no other flag and no other rule outweighs it";
  permit.risk = "the command does what somebody chose to refuse";
  return permit;
}

// The whole hidden place: one path below it cannot be opened alone.
std::string secret_around(const std::string& path, const PermitContext& context) {
  for (std::string& secret : default_secret_paths(context.home, context.runtime_dir)) {
    if (is_within(path, secret)) return std::move(secret);
  }
  return path;
}

Permit permit_secret(const Violation& violation, const PermitContext& context) {
  const std::string secret = secret_around(violation.target, context);
  constexpr char kOutside[] = "make this one change yourself, outside the sandbox";
  Permit permit;
  // What Belljar keeps, answers of agents and trails among it, counts because no command can have written it.
  const bool ours = !context.state_dir.empty() && is_within(violation.target, context.state_dir);
  const bool names = secret == violation.target && (violation.operation == "delete" || violation.operation == "rename");
  if (violation.errnum == EBUSY || names || (ours && !reads(violation.operation)) ||
      violation.operation == "link") {  // a grant is a mount, whose name stays
    permit.note = kOutside;
    return permit;
  }
  permit = grant_path(reads(violation.operation) ? "filesystem.readonly_paths" : "filesystem.writable_roots", secret);
  permit.risk = reads(violation.operation) ? "the command, and whoever wrote it, can read these keys and tokens"
                                           : "the command, and whoever wrote it, can read and change these keys and tokens";
  if (!reads(violation.operation)) permit.note = "it has to exist before; better: " + std::string(kOutside);
  return permit;
}

Permit permit_read(const Violation& violation, const PermitContext& context) {
  if (violation.rule == "filesystem.secrets") return permit_secret(violation, context);
  Permit permit = grant_path("filesystem.readonly_paths", violation.target);
  permit.note = format("a rule for a directory above it may have to go first: {}", where(violation.origin));
  permit.risk = "the command can read what somebody chose to hide";
  return permit;
}

// The agent or editor name that `path` is or lies below; empty where it is git's, whose content no grant of a path lets be.
std::string_view agent_name_in(std::string_view path) {
  std::string_view found;
  for (std::size_t at = path.find('/'); at != std::string_view::npos; at = path.find('/', at + 1)) {
    const std::string_view rest = path.substr(at + 1);
    const std::string_view part = rest.substr(0, rest.find('/'));
    if (folds_to(part, ".git") || folds_to(part, ".gitmodules")) return {};
    if (const std::size_t length = protected_length(rest); length > 0) found = path.substr(0, at + 1 + length);
  }
  return found;
}

// Whether filesystem.protect = "default" lets be what "all" refused below `.git`: hooks it keeps as well, links and other nodes,
// and the name itself. `judged`: by content, which is not known here.
bool is_left_to_git(const Violation& violation, bool& judged) {
  if (violation.allowed != kGitByDefault || violation.operation == "symlink" || violation.operation == "mknod" ||
      violation.operation == "link")
    return false;
  const std::string_view path = violation.target;
  const std::string_view last = file_name(path);
  if (folds_to(last, ".git")) return violation.operation != "rename";
  bool below = false, hooks = false;
  for (std::size_t at = path.find('/'); at != std::string_view::npos; at = path.find('/', at + 1)) {
    const std::string_view rest = path.substr(at + 1);
    const std::string_view part = rest.substr(0, rest.find('/'));
    if (below && folds_to(part, "hooks") && part.size() < rest.size()) hooks = true;
    below = below || folds_to(part, ".git");
  }
  judged = std::ranges::any_of(git_control_names(), [&](std::string_view name) { return folds_to(last, file_name(name)); });
  return below && (!hooks || last.ends_with(".sample"));
}

Permit permit_git_work(bool judged) {
  Permit permit = grant_value("filesystem.protect", "", std::string("default"));
  permit.flag.clear();
  if (judged) permit.note = "its content is judged then: settings that run nothing and point nowhere else";
  permit.risk = "git outside works on what the command made of the repository; hooks and what git obeys stay protected";
  return permit;
}

constexpr char kYourself[] = "better: make this one change yourself, outside the sandbox, after reading it";

constexpr char kNotYours[] = "not enough alone: the owner or mode of the path refuses you outside the sandbox, too";

bool makes(std::string_view operation) { return operation == "create" || operation == "mkdir"; }

// A grant of what is not there yet.
Permit made_first(Permit grant) {
  grant.step = format("create it outside first, then {}", grant.flag);
  grant.flag.clear();
  grant.line.clear();
  return grant;
}

// The workspace's own `.git`, or what git cannot do without below it.
Permit permit_git_removal() {
  Permit permit = grant_value("filesystem.allow_git_removal", "", true);
  permit.note = "git's own commands need none; with --txn it is removed in the transaction, and for good by `belljar commit` alone";
  return permit;
}

// An entry that names an agent or editor name lifts its protection, and is a mount: the name has to be there, and stays where it
// is.
Permit permit_protected(const Violation& violation) {
  if (bool judged = false; is_left_to_git(violation, judged)) return permit_git_work(judged);
  if (violation.allowed == kGitRemoval) return permit_git_removal();
  const std::string name(agent_name_in(violation.target));
  const bool itself = name == violation.target;
  Permit permit;
  if (name.empty() || (itself && changes_directory(violation.operation) && !makes(violation.operation))) {
    permit = grant_value("filesystem.protect", "", std::string("none"));
    permit.flag.clear();
  } else {
    permit = grant_path("filesystem.writable_roots", name);
    permit.risk = std::string(risk_of("filesystem.protect"));
    if (itself && makes(violation.operation)) permit = made_first(std::move(permit));
  }
  permit.note = kYourself;
  return permit;
}

// An agent's or editor's name: its directory would be a writable root by the grant, and the name protected in it.
bool is_agent_name(std::string_view path) {
  const std::string_view name = file_name(path);
  return !name.empty() && protected_length(name) == name.size();
}

Permit permit_agent_name(const Violation& violation) {
  Permit permit;
  if (makes(violation.operation)) permit = made_first(grant_path("filesystem.writable_roots", violation.target));
  permit.note = kYourself;
  permit.risk = std::string(risk_of("filesystem.protect"));
  return permit;
}

// The shipped profile for the agent whose state directory `path` is or lies below; empty: none.
std::string_view agent_profile_for(std::string_view path, const PermitContext& context) {
  if (context.home.empty()) return {};
  for (const Agent& agent : agents()) {
    const auto layer = profile_layer(agent.profile);
    if (!layer) continue;
    for (const Setting& setting : layer->settings) {
      if (setting.key->name != "filesystem.scratch") continue;
      for (const std::string& scratch : std::get<std::vector<std::string>>(setting.value)) {
        if (scratch.starts_with("~/") && is_within(path, context.home + scratch.substr(1))) return agent.profile;
      }
    }
  }
  return {};
}

// An agent's own state: a grant of the path would let pass what the agent runs at its next start outside.
std::optional<Permit> permit_agent_state(const Violation& violation, const PermitContext& context) {
  Permit permit;
  if (const std::string_view profile = agent_profile_for(violation.target, context); !profile.empty()) {
    // Only where the profile is in force already is the name a mount.
    if (violation.errnum == EBUSY) {
      permit.note = "it persists as a single file, whose name stays: write it in place, by no rename, and it persists";
      return permit;
    }
    permit = grant_value("profile", "", std::string(profile));
    permit.flag = format("--policy {}", profile);
    permit.note =
        format("the agent may write there then; `belljar policy show {}` says what persists, the rest is dropped", profile);
    permit.risk = "transcripts and the log-in that persist can be forged by the command";
    return permit;
  }
  // Claude Code's, with the files that it makes beside it to replace it.
  if (const std::string file = context.home + "/.claude.json"; !context.home.empty() && violation.target.starts_with(file)) {
    permit.note =
        "the agent goes on without; it names programs that run at the next start outside: make this one change yourself, outside";
    return permit;
  }
  return std::nullopt;
}

// A grant of `place` would open all of a home, or more: the very name alone can be granted.
Permit permit_in_home(const Violation& violation, const std::string& place) {
  Permit permit;
  if (makes(violation.operation)) permit = made_first(grant_path("filesystem.writable_roots", violation.target));
  permit.note =
      format("--write {} would open all of it; a program's own files can go elsewhere: --env HOME=DIR", shell_word(place));
  return permit;
}

Permit permit_write(const Violation& violation, const PermitContext& context) {
  if (auto agents = permit_agent_state(violation, context)) return *std::move(agents);
  if (violation.rule.starts_with("filesystem.protect")) return permit_protected(violation);
  if (violation.rule == "filesystem.secrets") return permit_secret(violation, context);
  const bool parent = changes_directory(violation.operation);
  if (parent && is_agent_name(violation.target)) return permit_agent_name(violation);
  const std::string place = parent ? parent_of(violation.target) : violation.target;
  if (parent && (place == "/" || (!context.home.empty() && is_within(context.home, place))))
    return permit_in_home(violation, place);
  Permit permit = grant_path("filesystem.writable_roots", place);
  // Inside it may be there: what hides names below it makes it.
  if (context.exists && !context.exists(place)) permit = made_first(std::move(permit));
  if (context.modes_allow && !context.modes_allow(place, violation.operation)) permit.note = kNotYours;
  if (violation.origin.layer != "built-in" && !violation.origin.layer.empty())
    permit.note = format("{} refuses it, and stands against a wider grant: change it there", where(violation.origin));
  return permit;
}

Permit permit_limit(const Violation& violation) {
  Permit permit;
  const Key* key = find_key(violation.rule);
  if (key == nullptr) return permit;
  permit.flag = key->flag.empty() ? "" : format("{} MORE", key->flag);
  permit.line = format("{} = MORE", key->name);
  permit.note = format("MORE is {}, above what was in force: {}", expected(*key), escaped(violation.allowed));
  permit.risk = std::string(risk_of(*key));
  return permit;
}

// "unshare CLONE_NEWUSER", "clone CLONE_NEWUSER": what the broker says of the call.
bool makes_namespaces(std::string_view call) {
  return call.starts_with("unshare") || call.starts_with("clone") || call.starts_with("setns");
}

Permit permit_key(const Violation& violation) {
  Permit permit;
  const Key* key = find_key(violation.rule);
  if (key == nullptr) {
    permit.note = "nothing permits this inside a sandbox: run this step outside, if you trust it";
    return permit;
  }
  permit.risk = std::string(risk_of(*key));
  // A mount needs capabilities, which a program has in such a namespace alone: the call passes then, and still fails in this one.
  if (key->name == "allow_nested_userns" && !makes_namespaces(violation.target)) {
    permit = grant_value(key->name, "", true);
    permit.note = "only in namespaces that the program makes for itself (`unshare -rm`): nothing lets it do so in this sandbox's";
    return permit;
  }
  if (key->name == "allow_nested_userns") {
    permit = grant_value(key->name, "", true);
    permit.note = "where patterns are held, `--accept filesystem.globs` goes with it";
    permit.risk += "; then also what those patterns keep, as Claude Code's memories of projects, is written to";
    return permit;
  }
  if (key->type == Type::kBool) {
    if (const std::string flag = flag_of(violation.origin); !flag.empty()) permit.step = format("leave out or change {}", flag);
    return permit.step.empty() ? grant_value(key->name, "", !key->strict) : permit;
  }
  permit.note = format("change `{}` at {}", key->name, where(violation.origin));
  return permit;
}

// A path is opened by itself; abstract names all together or not at all.
Permit permit_socket(const Violation& violation) {
  if (violation.target.starts_with('/')) return grant_path("network.allow_unix_sockets", violation.target);
  return grant_value("network.allow_all_unix_sockets", "", true);
}

// The proxy, which `network.mode = "none"` lacks, opened for one rule. A table, so that it stays one line of a file.
Permit grant_by_proxy(const std::string& rule) {
  Permit permit;
  permit.flag = format("--net proxy --allow-domain {}", shell_word(rule));
  permit.line = format("network = {{ mode = \"proxy\", allowed_domains = {} }}", to_toml(std::vector<std::string>{rule}));
  permit.risk = std::string(risk_of("network.allowed_domains"));
  return permit;
}

// Names are looked up and TCP is carried by the proxy; the host's network, which gives up all control, is named only for what
// nothing else carries.
Permit permit_without_network(const Violation& violation) {
  constexpr std::uint16_t kDns = 53;
  const auto place = parse_destination(violation.target, 0);
  if (place && place->port == kDns) {
    Permit permit = grant_by_proxy("HOST");
    permit.note = "a name was looked up: HOST is that name; nothing else can be reached";
    return permit;
  }
  if (place && violation.operation == "connect" && place->host.ip) {
    Permit permit = grant_by_proxy(violation.target);
    permit.note = place->host.ip->v6 ? "over IPv6 the program has to use the proxy, whose address is in HTTPS_PROXY and ALL_PROXY"
                                     : "if a name was meant, name it instead: --allow-domain HOST";
    return permit;
  }
  Permit permit = grant_value("network.mode", "host", std::string("host"));
  permit.note = "with `--allow-domain HOST` programs reach that host over TCP, by a proxy, and nothing else";
  return permit;
}

Permit permit_network(const Violation& violation) {
  if (violation.allowed == kTcpByProxy) {
    Permit permit;
    permit.note =
        "most programs fall back to TCP (QUIC to HTTPS), which leaves by the proxy; nothing but the host's network carries UDP";
    permit.risk = "none";
    return permit;
  }
  if (violation.allowed == kHostsByProxy) {
    Permit permit = grant_value("network.allowed_domains", "HOST", std::vector<std::string>{"HOST"});
    permit.note =
        "HOST is the name that was meant; the program has to use the proxy, whose address is in HTTPS_PROXY and ALL_PROXY";
    return permit;
  }
  return permit_without_network(violation);
}

Permit permit_any(const Violation& violation, const PermitContext& context) {
  if (violation.operation == "limit") return permit_limit(violation);
  if (violation.rule == "network.mode") return permit_network(violation);
  if (violation.rule == "network.allowed_domains") {
    constexpr std::uint16_t kAnyPort = 443;  // of a name that was only looked up
    if (!parse_destination(violation.target, kAnyPort)) {
      Permit permit;
      permit.note = "no host can have that name";
      return permit;
    }
    Permit permit = grant_value(violation.rule, shell_word(violation.target), std::vector<std::string>{violation.target});
    permit.note = "a name that leads to an address that is not public needs a rule for that address, too";
    return permit;
  }
  if (violation.rule == "network.transparent") {
    Permit permit;
    permit.note = "use a program that reads HTTPS_PROXY, or a new sandbox: its table of names is empty";
    return permit;
  }
  if (violation.rule == "network.methods") return grant_value(violation.rule, "full", std::string("full"));
  if (violation.rule == "limits.egress_heads") return grant_value(violation.rule, "1MiB", Bytes{1ULL << 20});
  if (violation.rule == "network.allow_unix_sockets") return permit_socket(violation);
  if (violation.rule == "mode" || violation.rule.starts_with("filesystem.")) {
    if (stands(violation)) return permit_by_rule(violation);
    if (violation.target.starts_with('/'))
      return reads(violation.operation) ? permit_read(violation, context) : permit_write(violation, context);
  }
  return permit_key(violation);
}

}  // namespace

Permit permit_for(const Violation& violation, const PermitContext& context) {
  Permit permit = permit_any(violation, context);
  if (permit.risk.empty()) permit.risk = risk_of(violation.rule);
  if (permit.risk.empty()) permit.risk = "none";
  return permit;
}

bool is_intended(const Violation& violation) {
  return violation.rule == "filesystem.entries" && violation.origin.layer.starts_with("agent-") && is_shipped(violation.origin);
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+=:,@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) return std::string(text);
  const bool visible = is_text(text);
  std::string word = visible ? "'" : "$'";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (visible) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
    else if (c == '\'' || c == '\\') word += '\\', word += c;
    else if (byte >= 0x20 && byte < 0x7F) word += c;
    else word += format("\\x{:02x}", byte);
  }
  return word + '\'';
}

}  // namespace belljar::policy
