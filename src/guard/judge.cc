// What rules, checks and defaults say of each simple command, and the strictest of it as the verdict on the
// script.
//
// For one command findings are collected from three sources: checks of meaning (hazards.cc), rules of files
// (rules.cc), and facts about it (it writes a file by a redirection, it only reads, it only starts something
// else). They are sorted by strictness, and the first one decides. What no source speaks about gets
// `unmatched`, which is a question by default.
//
// Two facts allow something by themselves. A command that is known to only read is allowed, unless
// `unmatched` is forbid: then the file is a list of all that may run, and nothing passes for another reason.
// A wrapper is allowed because its inner command is judged by itself. Where reading commands pass, that holds
// only if what the wrapper sets around it (variables, redirections) is harmless too, since it would reach a
// command that passes unasked.
//
// A script is as strict as its strictest command. If anything in it could not be read, it is a question at
// least.
#include "guard/judge.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "guard/hazards.h"
#include "guard/read_only.h"
#include "guard/rules.h"
#include "policy/json.h"
#include "shell/script.h"

namespace belljar::guard {

using shell::Script;
using shell::SimpleCommand;
using shell::Unread;
using shell::Word;

namespace {

std::string pattern_text(const Rule& rule) {
  std::string text;
  for (const auto& words : rule.pattern) {
    if (!text.empty()) text += ' ';
    for (std::size_t i = 0; i < words.size(); ++i) text += (i == 0 ? "" : "|") + words[i];
  }
  return text;
}

void add_rules(const RuleSet& rules, const SimpleCommand& command, std::vector<Finding>& findings) {
  for (const Rule& rule : rules.rules) {
    const Match found = match(rule, command);
    if (found == Match::kYes) findings.push_back({rule.decision, pattern_text(rule), rule.reason, rule.origin});
    // It may turn out to match: enough to ask, never enough to allow.
    if (found == Match::kMaybe && rule.decision != Decision::kAllow)
      findings.push_back({Decision::kPrompt, pattern_text(rule),
                          "a word that only the run decides, or what may be an option's value, stands where the rule looks",
                          rule.origin});
  }
}

std::string where(const CommandVerdict& verdict) {
  std::string text;
  for (const std::string& label : verdict.command.inside) text += (text.empty() ? "in " : ", in ") + label;
  return text;
}

std::string json_list(const std::vector<std::string>& texts) {
  std::string list = "[";
  for (const std::string& text : texts) list += (list.size() > 1 ? "," : "") + policy::json_text(text);
  return list + "]";
}

std::string json_finding(const Finding& finding) {
  return format(R"({{"decision":"{}","rule":{},"reason":{},"origin":{}}})", to_string(finding.decision),
                policy::json_text(finding.rule), policy::json_text(finding.reason), policy::to_json(finding.origin));
}

std::string json_part(const CommandVerdict& verdict) {
  std::vector<std::string> words;
  std::string findings;
  for (const Word& word : verdict.command.argv) words.push_back(shown(word));
  for (const Finding& finding : verdict.findings) findings += (findings.empty() ? "" : ",") + json_finding(finding);
  return format(
      R"({{"text":{},"argv":{},"decision":"{}","read_only":{},"not_read_only":{},"inside":{},"begin":{},"end":{},"findings":[{}]}})",
      policy::json_text(to_line(verdict.command)), json_list(words), to_string(verdict.decision), verdict.read_only,
      policy::json_text(verdict.not_read_only), json_list(verdict.command.inside), verdict.command.span.begin,
      verdict.command.span.end, findings);
}

}  // namespace

CommandVerdict Judge::judge_command(const Script& script, const SimpleCommand& command) const {
  CommandVerdict verdict{.command = command};
  for (const Hazard& hazard : hazards()) {
    if (std::ranges::find(rules_.disabled, hazard.name) != rules_.disabled.end()) continue;
    if (auto finding = hazard.check(script, command)) verdict.findings.push_back(std::move(*finding));
  }
  add_rules(rules_, command, verdict.findings);
  const Decision redirects = rules_.redirects.value_or(Decision::kPrompt);
  const Decision unmatched = rules_.unmatched.value_or(Decision::kPrompt);
  const bool writes = std::ranges::any_of(command.redirects, writes_a_file);
  if (writes) verdict.findings.push_back({.decision = redirects, .rule = "redirects", .reason = "a redirection writes a file"});
  verdict.not_read_only = (command.starts_more ? why_not_surroundings(command) : why_not_read_only(command)).value_or("");
  verdict.read_only = verdict.not_read_only.empty();
  // What a wrapper sets reaches a command that passes as reading. A list of what may run lets nothing pass as that.
  if (command.starts_more && !writes && (verdict.read_only || unmatched == Decision::kForbid)) {
    verdict.findings.push_back({.decision = Decision::kAllow, .rule = "wrapper", .reason = "only starts what is judged by itself"});
  } else if (!command.starts_more && verdict.read_only && unmatched != Decision::kForbid) {
    verdict.findings.push_back({.decision = Decision::kAllow, .rule = "read-only", .reason = "is known to only read"});
  }
  if (verdict.findings.empty() && !command.argv.empty()) {
    const bool listed = unmatched == Decision::kForbid &&
                        std::ranges::any_of(rules_.rules, [](const Rule& rule) { return rule.reason == kAllowList; });
    verdict.findings.push_back({.decision = unmatched,
                                .rule = "unmatched",
                                .reason = listed ? format("{} does not list it", kAllowList) : "no rule speaks about it"});
  }
  std::ranges::stable_sort(verdict.findings, std::greater{}, &Finding::decision);
  verdict.decision = verdict.findings.empty() ? Decision::kAllow : verdict.findings[0].decision;
  return verdict;
}

Verdict Judge::judge(std::string_view text, std::string_view input) {
  Script script = reader_.read(text, input);
  Verdict verdict{.decision = Decision::kAllow, .read_only = script.unread.empty()};
  if (!script.unread.empty()) verdict.decision = Decision::kPrompt;
  for (const SimpleCommand& command : script.commands) {
    verdict.commands.push_back(judge_command(script, command));
    verdict.decision = std::max(verdict.decision, verdict.commands.back().decision);
    verdict.read_only =
        verdict.read_only && verdict.commands.back().read_only && verdict.commands.back().decision == Decision::kAllow;
  }
  verdict.unread = std::move(script.unread);
  return verdict;
}

std::string Verdict::reason() const {
  for (const CommandVerdict& verdict : commands) {
    if (verdict.decision == decision && !verdict.findings.empty() && (decision != Decision::kPrompt || unread.empty()))
      return format("{}: {} ({})", quoted(to_line(verdict.command)), verdict.findings[0].reason, verdict.findings[0].rule);
  }
  if (!unread.empty()) return "a part cannot be judged: " + unread[0].reason;
  return "nothing is run";
}

std::string to_text(const Verdict& verdict, std::string_view script) {
  std::string text;
  for (const CommandVerdict& command : verdict.commands) {
    text += format("{:<7} {}", to_string(command.decision), escaped(to_line(command.command)));
    if (const std::string place = where(command); !place.empty()) text += "   (" + escaped(place) + ")";
    text += '\n';
    for (const Finding& finding : command.findings) {
      text += format("        {}: {} [{}", to_string(finding.decision),
                     finding.reason.empty() ? "a rule matches" : escaped(finding.reason), escaped(finding.rule));
      text += finding.origin.file.empty() ? "]\n" : format("] {}:{}\n", escaped(finding.origin.file), finding.origin.line);
    }
  }
  for (const Unread& unread : verdict.unread) {
    const auto end = std::min<std::size_t>({unread.span.end, script.size(), unread.span.begin + 60UL});
    text += format(
        "prompt  {}\n        not judged: {}\n",
        quoted(script.substr(std::min<std::size_t>(unread.span.begin, end), end - std::min<std::size_t>(unread.span.begin, end))),
        escaped(unread.reason));
  }
  return text + format("{}{}\n", to_string(verdict.decision), verdict.read_only ? ", only reads" : "");
}

std::string to_json_text(const Verdict& verdict, std::string_view script) {
  std::string commands;
  std::string unread;
  for (const CommandVerdict& command : verdict.commands) commands += (commands.empty() ? "" : ",") + json_part(command);
  for (const Unread& place : verdict.unread)
    unread += (unread.empty() ? "" : ",") +
              format(R"({{"reason":{},"begin":{},"end":{}}})", policy::json_text(place.reason), place.span.begin, place.span.end);
  return format(R"({{"decision":"{}","read_only":{},"reason":{},"script":{},"parts":[{}],"unread":[{}]}})",
                to_string(verdict.decision), verdict.read_only, policy::json_text(verdict.reason()), policy::json_text(script),
                commands, unread) +
         "\n";
}

}  // namespace belljar::guard
