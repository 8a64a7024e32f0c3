// belljar rules check | list
#include "guard/rules.h"

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/read_file.h"
#include "base/real_path.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "cli/command_line.h"
#include "cli/errors.h"
#include "cli/guard/commands.h"
#include "cli/guard/rules_files.h"
#include "cli/load.h"
#include "guard/hazards.h"
#include "guard/judge.h"
#include "guard/permission.h"
#include "guard/permission_settings.h"
#include "guard/read_only.h"
#include "policy/json.h"
#include "policy/layer.h"
#include "policy/parse.h"
#include "shell/script.h"

namespace belljar::cli {
namespace {

struct RulesFlags {
  std::vector<std::string> rules;
  std::string policy, workspace = ".", text, mode, sandbox;
  std::vector<std::string> excluded;
  bool json = false, auto_allow = false, allow_unsandboxed = false, no_files = false;
};

// commands.allow and commands.deny of one policy file.
Result<void> add_policy_file(guard::RuleSet& set, const std::string& path) {
  const std::string text = BELLJAR_TRY(read_policy_file(path));
  const policy::Layer layer = BELLJAR_TRY(policy::parse_policy(text, path, "policy"));
  guard::join(set, BELLJAR_TRY(guard::rules_of(layer)), guard::Trust::kUser);
  return {};
}

Result<guard::RuleSet> load_rules(const RulesFlags& flags) {
  guard::RuleSet set;
  const std::string workspace = real_path(flags.workspace);
  if (workspace.empty())
    return Error(Code::kNotFound, format("cannot use the workspace {}", belljar::quoted(flags.workspace))).sys(errno, "realpath");
  if (!flags.no_files && !user_rules_file().empty()) BELLJAR_CHECK(add_rules_file(set, user_rules_file(), workspace, false));
  for (const std::string& file : flags.rules) BELLJAR_CHECK(add_rules_file(set, file, workspace, true));
  if (!flags.policy.empty()) BELLJAR_CHECK(add_policy_file(set, flags.policy));
  if (!flags.no_files) BELLJAR_CHECK(add_rules_file(set, workspace + "/.belljar/rules.toml", workspace, false));
  return set;
}

Result<guard::PermissionSettings> settings_of(const RulesFlags& flags) {
  static const std::map<std::string, guard::PermissionMode> kModes{{"default", guard::PermissionMode::kDefault},
                                                                   {"auto-edit", guard::PermissionMode::kAutoEdit},
                                                                   {"plan", guard::PermissionMode::kPlan},
                                                                   {"yolo", guard::PermissionMode::kYolo}};
  static const std::map<std::string, guard::SandboxState> kStates{
      {"on", guard::SandboxState::kOn}, {"off", guard::SandboxState::kOff}, {"unavailable", guard::SandboxState::kUnavailable}};
  const auto mode = kModes.find(flags.mode);
  const auto state = kStates.find(flags.sandbox.empty() ? "on" : flags.sandbox);
  if (mode == kModes.end())
    return Error(Code::kInvalidArgument, format("there is no mode {}", belljar::quoted(flags.mode)))
        .next("one of default, auto-edit, plan, yolo");
  if (state == kStates.end())
    return Error(Code::kInvalidArgument, format("--sandbox cannot be {}", belljar::quoted(flags.sandbox)))
        .next("one of on, off, unavailable");
  return guard::PermissionSettings{.mode = mode->second,
                                   .sandbox = state->second,
                                   .auto_allow_bash_if_sandboxed = flags.auto_allow,
                                   .allow_unsandboxed_commands = flags.allow_unsandboxed,
                                   .excluded_commands = flags.excluded};
}

int exit_code_of(guard::Decision decision) { return static_cast<int>(decision); }

// What permission makes of it: by the options when --mode is given, else by [permission] of the rules.
int decide(const RulesFlags& flags, guard::RuleSet rules) {
  auto settings = flags.mode.empty() ? Result<guard::PermissionSettings>(*rules.permission) : settings_of(flags);
  if (!settings) return print_error(settings.error());
  guard::PermissionJudge judge(std::move(*settings), std::move(rules));
  const guard::Permission permission = judge.decide({.tool = "bash", .command = flags.text});
  if (!permission.warning.empty()) print_note("warning: " + permission.warning);
  std::string text;
  if (flags.json) {
    text = format(R"({{"outcome":"{}","place":"{}","reason":{},"warning":{},"verdict":{}}})", guard::to_string(permission.outcome),
                  guard::to_string(permission.confinement), policy::json_text(permission.reason),
                  policy::json_text(permission.warning), guard::to_json_text(permission.verdict, flags.text));
    std::erase(text, '\n');
    text += '\n';
  } else {
    text = guard::to_text(permission.verdict, flags.text) + format("{} {} the sandbox: {}\n", guard::to_string(permission.outcome),
                                                                   guard::to_string(permission.confinement),
                                                                   escaped(permission.reason));
  }
  const int printed = print_result(text);
  return printed != 0 ? printed : static_cast<int>(permission.outcome);
}

// Those that only --mode reads.
Result<void> check_options(const RulesFlags& flags) {
  if (!flags.mode.empty()) return {};
  const char* option = !flags.sandbox.empty()    ? "--sandbox"
                       : flags.auto_allow        ? "--auto-allow"
                       : flags.allow_unsandboxed ? "--allow-unsandboxed"
                       : !flags.excluded.empty() ? "--exclude"
                                                 : nullptr;
  if (option == nullptr) return {};
  return Error(Code::kInvalidArgument, format("{} is for a permission mode, and there is none", option)).next("add --mode MODE");
}

int check(RulesFlags& flags) {
  if (const auto useless = check_options(flags); !useless) return print_error(useless.error());
  if (flags.text == "-") {
    auto text = read_stdin(shell::kMaxScript);
    if (!text) return print_error(text.error());
    flags.text = *std::move(text);
  }
  auto rules = load_rules(flags);
  if (!rules) return print_error(rules.error());
  if (!flags.mode.empty() || rules->permission) return decide(flags, std::move(*rules));
  guard::Judge judge(std::move(*rules));
  const guard::Verdict verdict = judge.judge(flags.text);
  const int printed = print_result(flags.json ? guard::to_json_text(verdict, flags.text) : guard::to_text(verdict, flags.text));
  return printed != 0 ? printed : exit_code_of(verdict.decision);
}

int list(RulesFlags&) {
  std::string text = "# Checks, by meaning; `disable = [\"NAME\"]` in a rules file of the user takes one out\n";
  for (const guard::Hazard& hazard : guard::hazards()) text += format("{:<18} {}\n", hazard.name, hazard.doc);
  text += "\n# Commands known to only read (plan mode runs nothing else), with what is refused of each\n";
  for (const guard::ReadOnlyProgram& program : guard::read_only_programs()) {
    text += std::string(program.name);
    if (!program.only.empty()) text += format(": only {}", program.only);
    if (!program.refused.empty()) text += format("   not {}", program.refused);
    text += '\n';
  }
  return print_result(text);
}

}  // namespace

Result<std::string> read_stdin(std::size_t limit) {
  auto text = read_at_most(STDIN_FILENO, limit + 1);
  if (!text) return Error(Code::kInvalidArgument, "cannot read stdin").sys(errno, "read").next("give it a file or a pipe: < FILE");
  return *std::move(text);
}

void add_rules(const OptionParser& app, int& exit_code) {
  const OptionParser group =
      app.add_subcommand("rules", "Judge shell commands by rules. Rules guide asking; only the sandbox holds a command");
  group.require_subcommand();
  const auto flags = std::make_shared<RulesFlags>();
  const OptionParser checking =
      group.add_subcommand("check",
                           "Explain part by part what rules say of a command. Exit code: 0 allow, 1 prompt, 2 "
                           "forbid; with --mode 0 run, 1 ask, 2 refuse");
  checking.add_option("TEXT", flags->text, "Shell text; `-` reads it from stdin").required();
  checking.add_option("--rules", flags->rules, "A rules file (TOML)").not_empty().repeatable().type_name("FILE");
  checking.add_option("--policy", flags->policy, "Take commands.allow and commands.deny of this policy file")
      .not_empty()
      .type_name("FILE");
  checking.add_option("--workspace", flags->workspace, "Its .belljar/rules.toml may narrow; files inside it never allow")
      .not_empty()
      .type_name("DIR");
  checking.add_flag("--no-files", flags->no_files, "Do not read the rules of the user and of the workspace");
  checking.add_flag("--json", flags->json, "As one JSON object");
  checking.add_option("--mode", flags->mode, "Say what this permission mode makes of it: default, auto-edit, plan, yolo")
      .type_name("MODE");
  checking.add_option("--sandbox", flags->sandbox, "With --mode: on (default), off, unavailable").not_empty().type_name("STATE");
  checking.add_flag("--auto-allow", flags->auto_allow, "With --mode: auto_allow_bash_if_sandboxed");
  checking.add_flag("--allow-unsandboxed", flags->allow_unsandboxed, "With --mode: allow_unsandboxed_commands");
  checking.add_option("--exclude", flags->excluded, "With --mode: an entry of excluded_commands").repeatable().type_name("PREFIX");
  checking.callback([flags, &exit_code] { exit_code = check(*flags); });
  group.add_subcommand("list", "The checks, and the commands known to only read").callback([flags, &exit_code] {
    exit_code = list(*flags);
  });
}

}  // namespace belljar::cli
