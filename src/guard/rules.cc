// Rules files, and how a rule's words are found in a command.
//
// A rule is a prefix: the words of its pattern stand at the beginning of the command. Rules that narrow
// (prompt, forbid) have to fit `git -C DIR push` as well as `git push`, because an option in front must not
// lead around them. Rules that allow must not be stretched in the same way, so for them each word stands
// exactly where it is written.
//
// match() is a small dynamic program over positions. `at[i]` says whether the next word of the pattern is
// expected at argv[i]; it starts with the program's name, moves on by one for each word that fits, and for
// narrowing rules also over options. An option that no table knows may or may not take the next word, so both
// positions are reached with kMaybe. A word that only the run decides could be the one that is looked for,
// which is kMaybe for the whole rule. A narrowing rule that fits maybe leads to a question; an allowing one
// that fits maybe allows nothing.
//
// Examples (`match`, `not_match`) are judged when the file is loaded, by the same parser and the same match()
// as real commands: a rule that does not do what its author meant is an error at that time, with the example
// in its text.
//
// Lists of a policy (commands.allow, commands.deny) become rules too. Their words are read behind a program
// that starts nothing (kStartsNothing), so that `su` or `parallel` in such a list means its own name and not
// what it would start.
#include "guard/rules.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/format.h"
#include "guard/hazards.h"
#include "policy/document.h"
#include "policy/schema.h"
#include "shell/global_options.h"

namespace belljar::guard {

using shell::Script;
using shell::ShellReader;
using shell::SimpleCommand;
using shell::takes_word;
using shell::TakesWord;
using shell::Word;

namespace {

constexpr std::array<std::string_view, 7> kSystemDirs{"/bin/",      "/usr/bin/",        "/usr/local/bin/",   "/sbin/",
                                                      "/usr/sbin/", "/usr/local/sbin/", "/opt/homebrew/bin/"};

std::optional<Decision> find_decision(std::string_view name) noexcept {
  if (name == "allow") return Decision::kAllow;
  if (name == "prompt") return Decision::kPrompt;
  if (name == "forbid") return Decision::kForbid;
  return std::nullopt;
}

std::optional<PermissionMode> find_mode(std::string_view name) noexcept {
  constexpr std::string_view kNames[] = {"default", "auto-edit", "plan", "yolo"};
  const auto* found = std::ranges::find(kNames, name);
  if (found == std::end(kNames)) return std::nullopt;
  return static_cast<PermissionMode>(found - std::begin(kNames));
}

bool names_program(std::string_view pattern, std::string_view word, Decision decision) noexcept {
  if (pattern == word) return true;
  const std::size_t slash = word.rfind('/');
  if (pattern.find('/') != std::string_view::npos || slash == std::string_view::npos) return false;
  if (word.substr(slash + 1) != pattern) return false;
  return decision != Decision::kAllow || std::ranges::find(kSystemDirs, word.substr(0, slash + 1)) != kSystemDirs.end();
}

std::string join_words(const std::vector<std::vector<std::string>>& pattern) {
  std::string text;
  for (const auto& words : pattern) {
    if (!text.empty()) text += ' ';
    for (std::size_t i = 0; i < words.size(); ++i) text += (i == 0 ? "" : "|") + words[i];
  }
  return text;
}

// Reads one rules file.
class Parser {
 public:
  Parser(policy::Source source, Trust trust) : source_(source), trust_(trust) {}

  Result<RuleSet> parse() {
    BELLJAR_CHECK(policy::check_text(source_));
    const policy::Node root = BELLJAR_TRY(policy::parse_toml_document(source_));
    for (const policy::Member& member : root.members) {
      if (member.key == "rule") BELLJAR_CHECK(parse_rules(member.value));
      else if (member.key == "unmatched") set_.unmatched = BELLJAR_TRY(setting(member));
      else if (member.key == "redirects") set_.redirects = BELLJAR_TRY(setting(member));
      else if (member.key == "disable") BELLJAR_CHECK(parse_disable(member));
      else if (member.key == "permission") BELLJAR_CHECK(parse_permission(member));
      else return unknown(member, "unmatched, redirects, disable, [permission], [[rule]]");
    }
    return std::move(set_);
  }

 private:
  Error at(policy::Position place, std::string what) const { return policy::error_at(source_, place, std::move(what)); }

  Error unknown(const policy::Member& member, std::string_view known) const {
    return at(member.at, format("unknown key {}", quoted(member.key)))
        .reason("every key must be known, so that a mistyped rule is not dropped in silence")
        .next(format("keys here: {}", known));
  }

  Error wider(policy::Position place, std::string what) const {
    return at(place, std::move(what))
        .reason("a file inside the workspace may only narrow: whatever works there can write to it")
        .next("put it into a file of the user, outside the workspace");
  }

  Result<Decision> decision(const policy::Member& member) const {
    const auto found = find_decision(member.value.text);
    if (member.value.kind == policy::Node::Kind::kText && found) return *found;
    return at(member.value.at, format("`{}` is {}", escaped(member.key), policy::describe(member.value)))
        .reason("it must be one of allow, prompt, forbid")
        .next("write for example " + escaped(member.key) + " = \"prompt\"");
  }

  Result<Decision> setting(const policy::Member& member) const {
    const Decision value = BELLJAR_TRY(decision(member));
    if (trust_ == Trust::kWorkspace && value == Decision::kAllow)
      return wider(member.at, format("`{} = \"allow\"` is not taken from here", escaped(member.key)));
    return value;
  }

  Result<std::vector<std::string>> texts(const policy::Member& member) const {
    if (member.value.kind != policy::Node::Kind::kList)
      return at(member.value.at, format("`{}` is {}, not a list of text", escaped(member.key), policy::describe(member.value)));
    std::vector<std::string> result;
    for (const policy::Node& item : member.value.items) {
      if (item.kind != policy::Node::Kind::kText)
        return at(item.at, format("`{}` holds {}, not text", escaped(member.key), policy::describe(item)));
      result.push_back(item.text);
    }
    return result;
  }

  Result<void> parse_disable(const policy::Member& member) {
    if (trust_ == Trust::kWorkspace) return wider(member.at, "`disable` is not taken from here");
    set_.disabled = BELLJAR_TRY(texts(member));
    for (const std::string& name : set_.disabled) {
      if (!is_hazard(name))
        return at(member.at, format("there is no check {}", quoted(name))).next("`belljar rules list` shows the checks");
    }
    return {};
  }

  Result<void> parse_permission(const policy::Member& table) {
    if (trust_ == Trust::kWorkspace) return wider(table.at, "`[permission]` is not taken from here");
    PermissionSettings settings;
    for (const policy::Member& member : table.value.members) {
      const bool is_flag = member.value.kind == policy::Node::Kind::kBool;
      const std::string& text = member.value.text;
      if (member.key == "mode" && find_mode(text)) settings.mode = *find_mode(text);
      else if (member.key == "sandbox" && (text == "on" || text == "off"))
        settings.sandbox = text == "on" ? SandboxState::kOn : SandboxState::kOff;
      else if (member.key == "auto_allow_bash_if_sandboxed" && is_flag) settings.auto_allow_bash_if_sandboxed = member.value.flag;
      else if (member.key == "allow_unsandboxed_commands" && is_flag) settings.allow_unsandboxed_commands = member.value.flag;
      else if (member.key == "ask_for_reads" && is_flag) settings.ask_for_reads = member.value.flag;
      else if (member.key == "excluded_commands") settings.excluded_commands = BELLJAR_TRY(texts(member));
      else
        return at(member.at, format("cannot take `{}` of [permission]", escaped(member.key)))
            .reason("it is unknown, or its value is of the wrong kind")
            .next(
                "mode, sandbox (on, off), auto_allow_bash_if_sandboxed, allow_unsandboxed_commands, excluded_commands, "
                "ask_for_reads");
    }
    set_.permission = std::move(settings);
    return {};
  }

  Result<void> parse_rules(const policy::Node& list) {
    if (list.kind != policy::Node::Kind::kList) return at(list.at, "`rule` is not a list of tables").next("write [[rule]]");
    for (const policy::Node& table : list.items) BELLJAR_CHECK(parse_rule(table));
    return {};
  }

  Result<void> parse_rule(const policy::Node& table) {
    Rule rule;
    rule.origin = {
        .layer = trust_ == Trust::kWorkspace ? "project" : "user", .file = std::string(source_.file), .line = table.at.line};
    std::vector<std::string> matches;
    std::vector<std::string> others;
    bool decided = false;
    for (const policy::Member& member : table.members) {
      if (rule.origin.line == 0) rule.origin.line = member.at.line;
      if (member.key == "pattern") {
        rule.pattern = BELLJAR_TRY(pattern(member));
      } else if (member.key == "decision") {
        rule.decision = BELLJAR_TRY(decision(member));
        decided = true;
        if (trust_ == Trust::kWorkspace && rule.decision == Decision::kAllow)
          return wider(member.at, "a rule that allows is not taken from here");
      } else if (member.key == "reason") {
        if (member.value.kind != policy::Node::Kind::kText || member.value.text.empty())
          return at(member.value.at, "`reason` must be a text that says something");
        rule.reason = member.value.text;
      } else if (member.key == "match") {
        matches = BELLJAR_TRY(texts(member));
      } else if (member.key == "not_match") {
        others = BELLJAR_TRY(texts(member));
      } else {
        return unknown(member, "pattern, decision, reason, match, not_match");
      }
    }
    const policy::Position place{rule.origin.line, 1};
    if (rule.pattern.empty() || !decided) return at(place, "a rule needs `pattern` and `decision`");
    for (const std::string& example : matches) BELLJAR_CHECK(check_example(rule, example, true, place));
    for (const std::string& example : others) BELLJAR_CHECK(check_example(rule, example, false, place));
    set_.rules.push_back(std::move(rule));
    return {};
  }

  Result<std::vector<std::vector<std::string>>> pattern(const policy::Member& member) const {
    std::vector<std::vector<std::string>> result;
    if (member.value.kind != policy::Node::Kind::kList)
      return at(member.value.at, "`pattern` is not a list").next("write pattern = [\"git\", [\"push\", \"fetch\"]]");
    for (const policy::Node& item : member.value.items) {
      std::vector<std::string> words;
      if (item.kind == policy::Node::Kind::kText) words.push_back(item.text);
      for (const policy::Node& word : item.items) {
        if (word.kind != policy::Node::Kind::kText) return at(word.at, "alternatives of a `pattern` are texts");
        words.push_back(word.text);
      }
      if (words.empty()) return at(item.at, "a word of a `pattern` is a text or a list of texts");
      result.push_back(std::move(words));
    }
    return result;
  }

  Result<void> check_example(const Rule& rule, const std::string& example, bool wanted, policy::Position place) {
    const Script script = reader_.read(example);
    if (!script.unread.empty())
      return at(place, format("the example {} cannot be read: {}", quoted(example), script.unread[0].reason));
    const bool found =
        std::ranges::any_of(script.commands, [&](const SimpleCommand& command) { return match(rule, command) == Match::kYes; });
    if (found == wanted) return {};
    return at(place, format("the example {} {} the pattern `{}`", quoted(example), wanted ? "does not match" : "matches",
                            escaped(join_words(rule.pattern))))
        .reason(wanted ? "it stands under `match`" : "it stands under `not_match`")
        .next("mend the pattern, or the example");
  }

  policy::Source source_;
  Trust trust_;
  RuleSet set_;
  ShellReader reader_;
};

constexpr std::string_view kStartsNothing = "true ";

Result<void> add_list(RuleSet& set, const std::vector<std::string>& list, Decision decision, const Origin& origin) {
  ShellReader reader;
  for (const std::string& text : list) {
    const auto refuse = [&](std::string_view wanted, std::string reason, std::string next) {
      return Error(Code::kInvalidArgument, format("{}: {} is not a command prefix{}", to_string(origin), quoted(text), wanted))
          .reason(std::move(reason))
          .next(std::move(next));
    };
    const Script script = reader.read(text);
    // The same words behind a program that starts nothing: what `su` or `parallel` would start is not asked here.
    const Script words = reader.read(std::string(kStartsNothing) + text);
    const bool plain = !script.commands.empty() && script.commands[0].assignments.empty() && words.unread.empty() &&
                       words.commands.size() == 1 && words.commands[0].redirects.empty() &&
                       words.commands[0].span.end == kStartsNothing.size() + text.size() &&
                       std::ranges::all_of(words.commands[0].argv, &Word::fixed) && words.commands[0].argv.size() > 1;
    if (!plain)
      return refuse("", "it must be plain words, such as `git` or `git push`", "write [[rule]] tables in a rules file for more");
    if (decision == Decision::kAllow && !script.unread.empty())
      return refuse(" that can be allowed", "what it starts cannot be judged: " + script.unread[0].reason,
                    "leave it out, or be asked: a [[rule]] with decision = \"prompt\" in a rules file");
    Rule rule{
        .decision = decision, .reason = decision == Decision::kAllow ? std::string(kAllowList) : "commands.deny", .origin = origin};
    for (const Word& word : words.commands[0].argv | std::views::drop(1)) rule.pattern.push_back({word.text});
    set.rules.push_back(std::move(rule));
  }
  return {};
}

}  // namespace

std::string_view to_string(Decision decision) noexcept {
  return decision == Decision::kAllow ? "allow" : decision == Decision::kPrompt ? "prompt" : "forbid";
}

// Each word of the pattern where it may stand: behind the one before, and for what narrows also behind options (`git -C DIR push`,
// `docker --context x run`), whose value may be the next word.
Match match(const Rule& rule, const SimpleCommand& command) noexcept {
  const std::vector<Word>& argv = command.argv;
  const bool narrows = rule.decision != Decision::kAllow;
  const std::string_view program = program_name(command);
  // at[i]: whether the next word of the pattern is looked for at argv[i].
  std::vector<Match> at(argv.size() + 3, Match::kNo);
  at[0] = Match::kYes;
  Match doubt = Match::kNo;
  for (std::size_t j = 0; j < rule.pattern.size(); ++j) {
    std::vector<Match> next(at.size(), Match::kNo);
    const auto reach = [](Match& place, Match how) { place = std::max(place, how); };
    for (std::size_t i = 0; i < argv.size(); ++i) {
      if (at[i] == Match::kNo) continue;
      const Word& word = argv[i];
      // What the run decides may be this word, and the rest of them.
      if (!word.fixed) {
        doubt = Match::kMaybe;
        continue;
      }
      const auto fits = [&](const std::string& text) {
        return j == 0 ? names_program(text, word.text, rule.decision) : text == word.text;
      };
      if (std::ranges::any_of(rule.pattern[j], fits)) reach(next[i + 1], at[i]);
      if (!narrows || j == 0) continue;
      if (program == "cargo" && word.text.starts_with('+')) reach(at[i + 1], at[i]);
      if (!word.text.starts_with('-') || word.text == "-") continue;
      const TakesWord takes = takes_word(program, word.text);
      if (takes == TakesWord::kUnknown) reach(at[i + 1], Match::kMaybe), reach(at[i + 2], Match::kMaybe);
      else reach(at[i + (takes == TakesWord::kYes ? 2 : 1)], at[i]);
    }
    at = std::move(next);
  }
  return std::max(doubt, *std::ranges::max_element(at));
}

Result<RuleSet> parse_rules(std::string_view text, std::string_view file, Trust trust) {
  return Parser({text, file}, trust).parse();
}

Result<RuleSet> rules_of(const Commands& commands, const Origin& origin) {
  RuleSet set;
  BELLJAR_CHECK(add_list(set, commands.allow, Decision::kAllow, origin));
  BELLJAR_CHECK(add_list(set, commands.deny, Decision::kForbid, origin));
  if (!commands.allow.empty()) set.unmatched = Decision::kForbid;
  return set;
}

Result<RuleSet> rules_of(const policy::Layer& layer) {
  RuleSet set;
  for (const policy::Setting& setting : layer.settings) {
    Commands commands;
    if (setting.key->name == "commands.allow") commands.allow = std::get<std::vector<std::string>>(setting.value);
    else if (setting.key->name == "commands.deny") commands.deny = std::get<std::vector<std::string>>(setting.value);
    else continue;
    join(set, BELLJAR_TRY(rules_of(commands, setting.origin)), Trust::kUser);
  }
  return set;
}

void join(RuleSet& set, RuleSet other, Trust trust) {
  std::ranges::move(other.rules, std::back_inserter(set.rules));
  if (trust == Trust::kUser) std::ranges::move(other.disabled, std::back_inserter(set.disabled));
  if (trust == Trust::kUser && other.permission) set.permission = std::move(other.permission);
  const auto set_from = [&](std::optional<Decision>& ours, std::optional<Decision> theirs) {
    if (!theirs) return;
    ours = trust == Trust::kWorkspace ? std::max(ours.value_or(Decision::kPrompt), *theirs) : *theirs;
  };
  set_from(set.unmatched, other.unmatched);
  set_from(set.redirects, other.redirects);
}

}  // namespace belljar::guard
