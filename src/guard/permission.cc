// From what rules say to what happens: run, ask or refuse, inside the sandbox or outside of it.
//
// The order of the questions is the policy (permission.h). Refusals come first, so that nothing later can
// lift them: a forbidding rule, plan mode, a sandbox that is wanted and cannot be made. Then where it would
// run, because that decides what the user has to be warned of. Only then approvals of this session, rules
// that allow, and what wants to be asked.
//
// "No rule speaks about it" is not the same as "a rule asks": the first yields to
// auto_allow_bash_if_sandboxed, the second does not. For the same reason a command counts as allowed by rules
// only if rules of a person allow each of its simple commands; what the built-in list of reading commands
// knows is no decision of anybody.
//
// A command is excluded from the sandbox only if all of it matches and nothing in it is unread. `docker ps;
// make` is not excluded because it begins with docker.
//
// A callback can turn a question into an answer. It may also change the command, which is judged anew then,
// and refused if the rules forbid it: otherwise a callback could be led to say yes to one thing and another
// would run.
#include "guard/permission.h"

#include <algorithm>

#include "base/format.h"
#include "policy/permit.h"

namespace belljar::guard {
namespace {

constexpr std::string_view kBareYolo = "no sandbox and no questions: whatever is proposed runs with all rights of this user";
constexpr std::string_view kBare = "runs outside the sandbox";

// "docker", "npm run test:*", "git push *": words that a command must begin with.
Result<Rule> prefix_rule(std::string_view text) {
  if (text.ends_with(":*") || text.ends_with(" *")) text.remove_suffix(2);
  const Commands commands{.allow = {std::string(text)}, .deny = {}};
  RuleSet set = BELLJAR_TRY(rules_of(commands, {}));
  return std::move(set.rules[0]);
}

bool is_neutral(const Finding& finding) noexcept { return finding.rule == "wrapper" || finding.rule == "read-only"; }

// Rules of a person allow each command; what the built-in lists know does not count.
bool allowed_by_rules(const Verdict& verdict) noexcept {
  if (verdict.decision != Decision::kAllow || verdict.commands.empty()) return false;
  return std::ranges::all_of(verdict.commands, [](const CommandVerdict& command) {
    if (command.command.starts_more || command.command.argv.empty()) return true;
    return std::ranges::any_of(command.findings,
                               [](const Finding& finding) { return finding.decision == Decision::kAllow && !is_neutral(finding); });
  });
}

// Somebody wants to be asked: a rule, a check, or a place that cannot be judged. "No rule speaks about it" does not count.
bool wants_asking(const Verdict& verdict) noexcept {
  if (!verdict.unread.empty()) return true;
  return std::ranges::any_of(verdict.commands, [](const CommandVerdict& command) {
    return std::ranges::any_of(command.findings, [](const Finding& finding) {
      return finding.decision == Decision::kPrompt && finding.rule != "unmatched" && finding.rule != "redirects";
    });
  });
}

}  // namespace

PermissionJudge::PermissionJudge(PermissionSettings settings, RuleSet user)
    : settings_(std::move(settings)), judge_(std::move(user)) {
  for (const std::string& text : settings_.excluded_commands) {
    // What is not a plain prefix excludes nothing: the command stays inside.
    if (auto rule = prefix_rule(text)) excluded_.push_back(std::move(*rule));
  }
}

Result<void> PermissionJudge::add_rules(Scope scope, RuleSet rules) {
  const auto allows = [](const Rule& rule) { return rule.decision == Decision::kAllow; };
  const bool wider = !rules.disabled.empty() || rules.unmatched == Decision::kAllow || rules.redirects == Decision::kAllow ||
                     std::ranges::any_of(rules.rules, allows);
  if (scope == Scope::kProject && wider) {
    return Error(Code::kPermissionDenied, "the project's rules would allow something")
        .reason("a file inside the workspace may only narrow: whatever works there can write to it")
        .next("put the rule into the user's rules");
  }
  RuleSet joined = judge_.rules();
  join(joined, std::move(rules), scope == Scope::kProject ? Trust::kWorkspace : Trust::kUser);
  judge_ = Judge(std::move(joined));
  return {};
}

Result<void> PermissionJudge::approve(std::string_view prefix) {
  approved_.push_back(BELLJAR_TRY(prefix_rule(prefix)));
  return {};
}

bool PermissionJudge::is_excluded(const Verdict& verdict) const {
  if (verdict.commands.empty() || !verdict.unread.empty()) return false;
  return std::ranges::all_of(verdict.commands, [&](const CommandVerdict& command) {
    return std::ranges::any_of(excluded_, [&](const Rule& rule) { return match(rule, command.command) == Match::kYes; });
  });
}

bool PermissionJudge::is_approved(const CommandVerdict& command) const {
  if (command.decision == Decision::kAllow || command.command.argv.empty()) return true;
  return std::ranges::any_of(approved_, [&](const Rule& rule) { return match(rule, command.command) == Match::kYes; });
}

Permission PermissionJudge::decide_command(const ToolCall& call) {
  Permission result;
  result.verdict = judge_.judge(call.command, call.standard_input);
  const Verdict& verdict = result.verdict;
  const auto end = [&](Outcome outcome, std::string reason) {
    result.outcome = outcome;
    result.reason = std::move(reason);
    return result;
  };
  if (verdict.decision == Decision::kForbid) return end(Outcome::kRefuse, verdict.reason());
  if (settings_.mode == PermissionMode::kPlan && !verdict.read_only)
    return end(Outcome::kRefuse, "plan mode runs only what is known to only read");
  if (settings_.sandbox == SandboxState::kUnavailable && !settings_.allow_unsandboxed_commands)
    return end(Outcome::kRefuse, "the sandbox cannot be made here, and allow_unsandboxed_commands is false");
  const bool excluded = settings_.sandbox == SandboxState::kOn && is_excluded(verdict);
  if (settings_.sandbox != SandboxState::kOn || excluded) result.confinement = Confinement::kOutside;
  if (settings_.mode == PermissionMode::kYolo) {
    if (result.confinement == Confinement::kOutside) result.warning = kBareYolo;
    return end(Outcome::kRun, "mode yolo asks nothing");
  }
  if (result.confinement == Confinement::kOutside) result.warning = kBare;
  if (settings_.mode == PermissionMode::kPlan) return end(Outcome::kRun, "is known to only read");
  const bool approved = verdict.unread.empty() && !verdict.commands.empty() &&
                        std::ranges::all_of(verdict.commands, [&](const CommandVerdict& command) { return is_approved(command); });
  if (approved && !approved_.empty() && verdict.decision == Decision::kPrompt)
    return end(Outcome::kRun, "was approved for this session");
  if (allowed_by_rules(verdict)) return end(Outcome::kRun, "rules allow each part");
  if (wants_asking(verdict)) return end(Outcome::kAsk, verdict.reason());
  if (!settings_.ask_for_reads && verdict.read_only) return end(Outcome::kRun, "is known to only read");
  if (result.confinement == Confinement::kInside && settings_.auto_allow_bash_if_sandboxed)
    return end(Outcome::kRun, "the sandbox holds it (auto_allow_bash_if_sandboxed)");
  return end(Outcome::kAsk, excluded ? "it is in excluded_commands, and would run outside the sandbox" : verdict.reason());
}

// As `rm -rf` of the same would be judged: what a rule or a check says of it counts, that none does says nothing.
Permission PermissionJudge::decide_removal(const std::vector<std::string>& paths) {
  Permission result{.outcome = Outcome::kRun};
  std::string text = "rm -rf --";
  for (const std::string& path : paths) text += " " + policy::shell_word(path);
  result.verdict = judge_.judge(text);
  const auto said = [&](const Finding& finding) { return finding.decision == Decision::kForbid && finding.rule != "unmatched"; };
  const bool forbidden = std::ranges::any_of(
      result.verdict.commands, [&](const CommandVerdict& command) { return std::ranges::any_of(command.findings, said); });
  if (forbidden) result.outcome = Outcome::kRefuse;
  else if (wants_asking(result.verdict)) result.outcome = Outcome::kAsk;
  if (result.outcome != Outcome::kRun) result.reason = result.verdict.reason();
  return result;
}

Permission PermissionJudge::decide(const ToolCall& call) {
  if (call.kind == ToolKind::kExecute) return decide_command(call);
  const bool writes = call.kind == ToolKind::kWrite;
  if (!writes) return {.outcome = Outcome::kRun, .reason = "only reads"};
  Permission removal;
  if (!call.removed.empty()) removal = decide_removal(call.removed);
  if (!call.removed.empty() && removal.outcome == Outcome::kRefuse) return removal;
  if (settings_.mode == PermissionMode::kPlan) return {.outcome = Outcome::kRefuse, .reason = "plan mode changes nothing"};
  if (!call.removed.empty() && removal.outcome == Outcome::kAsk && settings_.mode != PermissionMode::kYolo) return removal;
  if (settings_.mode == PermissionMode::kDefault) return {.outcome = Outcome::kAsk, .reason = "changes files"};
  return {.outcome = Outcome::kRun, .reason = format("mode {} lets files be changed", to_string(settings_.mode))};
}

Permission PermissionJudge::decide(ToolCall& call, const CanUseTool& callback) {
  Permission first = decide(call);
  if (first.outcome != Outcome::kAsk || !callback) return first;
  CallbackAnswer answer = callback(call, first);
  if (answer.kind == CallbackAnswer::Kind::kDeny) {
    first.outcome = Outcome::kRefuse;
    first.reason = answer.message.empty() ? "was denied" : answer.message;
    return first;
  }
  if (answer.kind == CallbackAnswer::Kind::kAsk) {
    if (!answer.message.empty()) first.reason = answer.message;
    return first;
  }
  if (!answer.input.empty()) {
    call.input = answer.input;
    if (call.kind == ToolKind::kExecute) call.command = std::move(answer.input);
    Permission again = decide(call);
    if (again.outcome == Outcome::kRefuse) return again;
    first = std::move(again);
  }
  first.outcome = Outcome::kRun;
  first.reason = "was allowed by the callback";
  return first;
}

std::string_view to_string(PermissionMode mode) noexcept {
  constexpr std::string_view kNames[] = {"default", "auto-edit", "plan", "yolo"};
  return kNames[static_cast<std::size_t>(mode)];
}

std::string_view to_string(Outcome outcome) noexcept {
  return outcome == Outcome::kRun ? "run" : outcome == Outcome::kAsk ? "ask" : "refuse";
}

std::string_view to_string(Confinement confinement) noexcept { return confinement == Confinement::kInside ? "inside" : "outside"; }

}  // namespace belljar::guard
