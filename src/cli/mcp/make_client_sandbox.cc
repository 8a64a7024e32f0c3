// From the command line to a sandbox of `belljar mcp` or `belljar agent`: policy, rules, permission.
//
// Everything is read anew for each sandbox, since policy and rules depend on the workspace, and a client may
// name one only when it calls. What needs no workspace is checked once at the start (check_flags), so that a
// wrong option is an error of the command and not of some later call.
//
// Rules are joined from the user's file, files of --rules, the policy's lists, and last the workspace's own
// file, which may only narrow. Permission goes key by key: an option before the policy, and that before
// [permission] of a rules file. `commands` and `permission` are taken out of the policy then, because they
// are honoured here and the sandbox would refuse what it cannot hold.
//
// Files that say what is allowed are made read-only for the sandbox, and files with keys hidden
// (own_files_of).
#include "cli/mcp/make_client_sandbox.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/format.h"
#include "base/real_path.h"
#include "belljar/audit.h"
#include "belljar/call_record.h"
#include "belljar/decorators.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/redact.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "belljar/state_dir.h"
#include "belljar/tools.h"
#include "belljar/turn.h"
#include "belljar/txn.h"
#include "belljar/units.h"
#include "cli/agents_txns.h"
#include "cli/audited.h"
#include "cli/command_line.h"
#include "cli/container/environment.h"
#include "cli/errors.h"
#include "cli/guard/rules_files.h"
#include "cli/load.h"
#include "cli/own_files.h"
#include "cli/policy_flags.h"
#include "cli/secrets.h"
#include "guard/permission.h"
#include "guard/permission_settings.h"
#include "guard/rules.h"
#include "mcp/client_sandboxes.h"
#include "mcp/judge.h"
#include "policy/backends.h"
#include "policy/explain.h"
#include "policy/names.h"
#include "policy/paths.h"
#include "policy/schema.h"
#include "txn/leftover.h"

namespace belljar::cli {
namespace {

// The flags with what a wish narrows. Errors: as find_workspace.
Result<PolicyFlags> flags_for(const McpFlags& given, const mcp::SandboxSpec& spec) {
  PolicyFlags flags = given.policy;
  if (spec.workspace) flags.workspace = {*spec.workspace};
  if (!spec.read_only) return flags;
  // --policy with a mode is a mode; with a profile or a file it stays, and the mode is said besides.
  if (flags.policy.empty() || policy::value_of<Mode>(flags.policy)) flags.policy = "read-only";
  else flags.values.emplace_back(policy::find_key("mode"), std::vector<std::string>{"read-only"});
  // By name: below a private /tmp it would not be seen otherwise.
  const std::string workspace = BELLJAR_TRY(find_workspace(flags.workspace, own_variable("HOME")));
  flags.values.emplace_back(policy::find_key("filesystem.readonly_paths"), std::vector<std::string>{workspace});
  return flags;
}

// `commands` of a policy, each with the line that says it.
Result<guard::RuleSet> rules_of_policy(const Commands& commands, const std::map<std::string, Origin>& origins) {
  guard::RuleSet set;
  const auto add = [&](const std::string& key, const std::string& text, const Commands& one) -> Result<void> {
    auto found = origins.find(format("{}[{}]", key, text));
    if (found == origins.end()) found = origins.find(key);
    guard::join(set, BELLJAR_TRY(guard::rules_of(one, found == origins.end() ? Origin{"policy", "", 0} : found->second)),
                guard::Trust::kUser);
    return {};
  };
  for (const std::string& text : commands.allow) BELLJAR_CHECK(add("commands.allow", text, {.allow = {text}, .deny = {}}));
  for (const std::string& text : commands.deny) BELLJAR_CHECK(add("commands.deny", text, {.allow = {}, .deny = {text}}));
  return set;
}

Result<guard::RuleSet> load_rules(const McpFlags& flags, const Commands& commands, const std::map<std::string, Origin>& origins,
                                  const std::string& workspace) {
  guard::RuleSet set;
  if (const std::string user = user_rules_file(); !user.empty()) BELLJAR_CHECK(add_rules_file(set, user, workspace, false));
  for (const std::string& file : flags.rules) BELLJAR_CHECK(add_rules_file(set, file, workspace, true));
  guard::join(set, BELLJAR_TRY(rules_of_policy(commands, origins)), guard::Trust::kUser);
  BELLJAR_CHECK(add_rules_file(set, workspace + "/.belljar/rules.toml", workspace, false));
  return set;
}

// An option comes before the policy, and that before a rules file, key by key.
Result<guard::PermissionSettings> permission_of(const McpFlags& flags, const Asking& asked, const guard::RuleSet& rules,
                                                bool confined) {
  const auto allows = [](guard::PermissionMode mode) { return mode != guard::PermissionMode::kDefault; };
  guard::PermissionSettings settings = rules.permission.value_or(flags.usual);
  if (asked.mode) settings.mode = BELLJAR_TRY(permission_mode_of("permission.mode", *asked.mode));
  if (asked.mode && !rules.permission) settings.auto_allow_bash_if_sandboxed = allows(settings.mode);
  if (asked.auto_allow_bash_if_sandboxed) settings.auto_allow_bash_if_sandboxed = *asked.auto_allow_bash_if_sandboxed;
  if (asked.ask_for_reads) settings.ask_for_reads = *asked.ask_for_reads;
  if (!flags.permission.empty()) {
    settings.mode = BELLJAR_TRY(permission_mode_of("--permission", flags.permission));
    if (!rules.permission && !asked.auto_allow_bash_if_sandboxed) settings.auto_allow_bash_if_sandboxed = allows(settings.mode);
  }
  if (settings.sandbox != guard::SandboxState::kOn && confined)
    return Error(Code::kInvalidArgument, "permission.sandbox says that there is no sandbox")
        .reason("`belljar mcp` makes one")
        .next("take it out of [permission]");
  settings.sandbox = confined ? guard::SandboxState::kOn : guard::SandboxState::kOff;
  return settings;
}

std::vector<std::string> warnings_of(const LoadedPolicy& loaded, const guard::PermissionSettings& settings, bool confined) {
  std::vector<std::string> warnings = loaded.effective.warnings;
  if (confined) return warnings;
  if (loaded.effective.policy.mode == Mode::kExternalSandbox)
    warnings.emplace_back("mode external-sandbox: no sandbox of ours holds the commands");
  if (settings.mode == guard::PermissionMode::kYolo)
    warnings.emplace_back("nothing is asked: whatever is proposed runs with all rights of this user");
  return warnings;
}

// Rules in the workspace only narrow, whoever wrote them; what is shown of content is obeyed wherever it lies.
std::vector<OwnFile> own_files_of(const McpFlags& flags, const std::string& workspace) {
  std::vector<OwnFile> files = flags.own_files;
  for (const std::string& file : flags.rules) {
    if (!policy::is_within(real_path(file), workspace))
      files.push_back({.doing = "obey the rules", .option = "--rules", .path = file, .protection = Protection::kReadOnly});
  }
  const DefenceFlags& defence = flags.defence;
  if (!defence.content.empty())
    files.push_back(
        {.doing = "obey the content policy", .option = "--content", .path = defence.content, .protection = Protection::kReadOnly});
  if (!defence.task_file.empty())
    files.push_back({.doing = "take the user's words from", .option = "--task-file", .path = defence.task_file});
  if (!defence.guardian.key_file.empty())
    files.push_back({.doing = "keep the guardian's key in", .option = "--guardian-key-file", .path = defence.guardian.key_file});
  if (!flags.http.token_file.empty())
    files.push_back({.doing = "keep the token in", .option = "--http-token-file", .path = flags.http.token_file});
  return files;
}

// What flags and files say of a sandbox and of what is asked before it is used.
struct SandboxPlan {
  LoadedPolicy loaded;
  SandboxConfig config;
  std::string named;  // the workspace as the caller calls it
  guard::RuleSet rules;
  guard::PermissionSettings settings;
  bool confined = false;
};

bool is_confined(const Policy& policy) noexcept {
  return policy.mode != Mode::kDangerFullAccess && policy.mode != Mode::kExternalSandbox;
}

Result<SandboxPlan> plan_client_sandbox(const McpFlags& flags, const mcp::SandboxSpec& spec) {
  const PolicyFlags policy_flags = BELLJAR_TRY(flags_for(flags, spec));
  SandboxPlan plan{.loaded = BELLJAR_TRY(load_policy(policy_flags))};
  plan.confined = is_confined(plan.loaded.effective.policy);
  BELLJAR_CHECK(keep_own_files(own_files_of(flags, plan.loaded.context.workspace), plan.loaded));
  if (!plan.confined && !flags.defence.task_file.empty())
    return Error(Code::kInvalidArgument, format("cannot take the user's words from {}", belljar::quoted(flags.defence.task_file)))
        .reason("no sandbox of ours holds the commands, and they could write there what the user is said to have said")
        .next("leave --task-file out, or choose a mode with a sandbox");
  plan.config.policy = plan.loaded.effective.policy;
  plan.config.origins = plan.loaded.effective.origins;
  plan.config.workspace = plan.loaded.context.workspace;
  plan.named = name_of_workspace(policy_flags.workspace, own_variable("PWD"), plan.config.workspace);
  plan.config.backend = plan.config.policy.backend;
  plan.config.fallback = plan.config.policy.fallback;
  // Several clients, whose sandboxes last: elsewhere one user looks at one of them.
  if (!flags.http.address.empty()) plan.config.siblings = Siblings::kHidden;
  // Honoured here, before the sandbox: it has no other way to hold them.
  const Commands commands = std::exchange(plan.config.policy.commands, {});
  plan.rules = BELLJAR_TRY(load_rules(flags, commands, plan.config.origins, plan.config.workspace));
  plan.config.container = container_of_environment(plan.loaded.effective);
  plan.settings = BELLJAR_TRY(permission_of(flags, std::exchange(plan.config.policy.permission, {}), plan.rules, plan.confined));
  return plan;
}

// bash where there is one. Of an image, or of somebody else's machine, the shell inside is asked, once for each command.
std::vector<std::string> shell_for(const SandboxConfig& config) {
  static const std::vector<std::string> kAsk = {"/bin/sh", "-c",
                                                "command -v bash >/dev/null && exec bash -c \"$1\"; exec /bin/sh -c \"$1\"", "sh"};
  const auto order = policy::backend_order(config.backend, config.fallback, config.policy.isolation);
  const auto finds_ours = [](const std::string& backend) {
    const policy::BackendKind* const kind = policy::find_backend_kind(backend);
    return kind != nullptr && kind->our_tree;
  };
  if (!order || !std::ranges::all_of(*order, finds_ours)) return kAsk;
  const bool has_bash = ::access("/bin/bash", X_OK) == 0 || ::access("/usr/bin/bash", X_OK) == 0;
  return has_bash ? std::vector<std::string>{"bash", "-c"} : std::vector<std::string>();
}

// Nobody misses a transaction that holds nothing. What holds work is the user's to commit or drop, also when a model ended its
// sandbox.
void put_away(const txn::Place& place) {
  const auto left = txn::drop_empty(place, [&](const std::string& name) { return name == place.name; });
  if (left && (left->empty() || left->front().dropped)) return;
  print_note(kept_note(place.name));
}

// "session.start": what a reader of the trail has to know of the records that follow.
AuditFields start_fields(const SandboxPlan& plan, const std::vector<std::string>& warnings) {
  const Policy& policy = plan.config.policy;
  return AuditFields()
      .text("workspace", plan.config.workspace)
      .text("profile", policy.profile)
      .text("mode", to_string(policy.mode))
      .text("permission", guard::to_string(plan.settings.mode))
      .text("network", to_string(policy.network.mode))
      .text("backend", policy.backend)
      .text("transaction", plan.config.transaction)
      .texts("warnings", warnings)
      .number("uid", ::geteuid());
}

}  // namespace

void add_txn_options(const OptionParser& command, McpFlags& flags) {
  command.add_flag("--txn", flags.txn, "The workspace is a transaction: the host sees its changes after `belljar commit`");
  command.add_option("--txn-name", flags.txn_name, "The transaction's name (default: `default`); implies --txn")
      .not_empty()
      .type_name("NAME");
}

bool has_transaction(const McpFlags& flags) noexcept { return flags.txn || !flags.txn_name.empty(); }

Result<mcp::SandboxSetup> make_client_sandbox(const McpFlags& flags, const mcp::SandboxSpec& spec, const CancelToken& cancel) {
  SandboxPlan plan = BELLJAR_TRY(plan_client_sandbox(flags, spec));
  // Plan mode runs what is known to only read; what that knowledge misses, the kernel refuses. A transaction holds it back anyway.
  if (plan.settings.mode == guard::PermissionMode::kPlan && plan.confined && !spec.read_only && !has_transaction(flags)) {
    mcp::SandboxSpec narrower = spec;
    narrower.read_only = true;
    plan = BELLJAR_TRY(plan_client_sandbox(flags, narrower));
  }
  auto& [loaded, config, named, rules, settings, confined] = plan;
  std::optional<AuditTrail> opened = BELLJAR_TRY(open_trail(flags.audit, &loaded));
  config.policy.filesystem = loaded.effective.policy.filesystem;  // with what keeps the trail
  mcp::SandboxSetup made;
  std::vector<std::string> leftover;
  made.policy = policy::explain_json(loaded.effective);
  made.timeout = config.policy.limits.timeout;
  // One that only reads has nothing to hold back, and sees the directory itself.
  if (has_transaction(flags) && !spec.read_only) {
    config.transaction = flags.txn_name.empty() ? "default" : flags.txn_name;
    txn::Place place{.workspace = config.workspace, .state_dir = default_state_dir(), .name = config.transaction};
    if (spec.number != 0) {
      config.transaction = place.name = BELLJAR_TRY(agents_transaction_name(place, spec.number));
      made.put_away = [place] { put_away(place); };
    } else if (const auto left = drop_agents_empty(place); left) {  // of a server that was killed
      for (const std::string& name : left->kept) leftover.push_back(kept_note(name));
    }
  }
  const std::optional<Bytes> quota = std::exchange(config.policy.limits.write_quota, {});
  made.warnings = warnings_of(loaded, settings, confined);
  std::ranges::move(leftover, std::back_inserter(made.warnings));
  std::shared_ptr<AuditTrail> trail;
  if (opened) {
    trail = std::make_shared<AuditTrail>(*std::move(opened));
    made.record = [trail, fields = start_fields(plan, made.warnings)]() -> Result<void> {
      BELLJAR_CHECK(trail->reserve());
      BELLJAR_TRY(trail->append("session.start", fields));
      return {};
    };
  }
  made.shell = shell_for(config);
  made.judge = BELLJAR_TRY(mcp::make_judge(std::move(settings), std::move(rules)));
  // Last of all: files and rules go by the canonical name.
  const std::string workspace = std::exchange(config.workspace, named);
  config.cancel = cancel;
  made.sandbox = BELLJAR_TRY(make_sandbox(config));
  if (named != workspace) {
    if (made.sandbox->workspace() != workspace)
      return Error(Code::kFailedPrecondition, format("cannot use workspace {}", belljar::quoted(named)))
          .reason("it was made another directory meanwhile");
    made.named = named;
  }
  if (quota) made.sandbox = with_write_quota(made.sandbox, *quota);
  made.secrets = std::make_shared<const Redactor>(secrets_of(config.policy, by_name(own_environment())));
  made.files = workspace_files(made.sandbox);
  if (trail) {
    made.calls = record_calls(trail, made.secrets, made.sandbox->id());
    made.sandbox = with_audit(made.sandbox, std::move(trail), made.secrets);
  }
  return made;
}

Result<void> check_flags(const McpFlags& flags) {
  const LoadedPolicy loaded = BELLJAR_TRY(load_without_workspace(flags.policy));
  const Policy& policy = loaded.effective.policy;
  guard::RuleSet rules = BELLJAR_TRY(load_rules(flags, policy.commands, loaded.effective.origins, loaded.context.workspace));
  guard::PermissionSettings settings = BELLJAR_TRY(permission_of(flags, policy.permission, rules, is_confined(policy)));
  BELLJAR_TRY(mcp::make_judge(std::move(settings), std::move(rules)));
  return {};
}

Result<guard::PermissionMode> permission_mode_of(std::string_view option, const std::string& word) {
  static const std::map<std::string, guard::PermissionMode> kWords{{"default", guard::PermissionMode::kDefault},
                                                                   {"auto-edit", guard::PermissionMode::kAutoEdit},
                                                                   {"plan", guard::PermissionMode::kPlan},
                                                                   {"yolo", guard::PermissionMode::kYolo}};
  const auto found = kWords.find(word);
  if (found != kWords.end()) return found->second;
  return Error(Code::kInvalidArgument, format("{} cannot be {}", option, belljar::quoted(word)))
      .next("one of default, auto-edit, plan, yolo");
}

Result<ToolTexts> texts_of(const std::string& word) {
  static const std::map<std::string, ToolTexts> kWords{{"belljar", ToolTexts::kBelljar},
                                                       {"document-000", ToolTexts::kDocument000},
                                                       {"document-001", ToolTexts::kDocument001},
                                                       {"document-002", ToolTexts::kDocument002}};
  const auto found = kWords.find(word);
  if (found != kWords.end()) return found->second;
  return Error(Code::kInvalidArgument, format("--texts cannot be {}", belljar::quoted(word)))
      .next("one of belljar, document-000, document-001, document-002");
}

}  // namespace belljar::cli
