// Command rules: prefix patterns on the words of a simple command, with a decision, a reason, and examples that are checked when
// the file is loaded. TOML:
//
//   unmatched = "prompt"            # allow | prompt | forbid: what no rule and no check speaks about
//   redirects = "prompt"            # allow | prompt: a redirection that writes a file
//   disable = ["sudo"]              # checks of hazards.h that this file takes out
//   [permission]                    # how to ask (permission_settings.h); `belljar policy import --part permission` writes it
//   mode = "default"
//   [[rule]]
//   pattern = ["git", ["push", "fetch"]]     # a list in the list: alternatives
//   decision = "prompt"
//   reason = "talks to the remote"
//   match = ["git push origin main"]
//   not_match = ["git status"]
//
// The strictest decision over all matches, all commands and all files wins: forbid > prompt > allow. A file from inside the
// workspace may only narrow: no `allow`, no `disable`, no looser `unmatched` or `redirects`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/policy.h"
#include "belljar/result.h"
#include "guard/permission_settings.h"
#include "policy/layer.h"
#include "shell/script.h"

namespace belljar::guard {

enum class Decision { kAllow, kPrompt, kForbid };  // in the order of strictness
std::string_view to_string(Decision decision) noexcept;

enum class Trust { kUser, kWorkspace };

struct Rule {
  std::vector<std::vector<std::string>> pattern;  // one set of alternatives for each word
  Decision decision = Decision::kAllow;
  std::string reason;
  Origin origin;
  bool operator==(const Rule&) const = default;
};

struct RuleSet {
  std::vector<Rule> rules;
  std::vector<std::string> disabled;             // names of hazards
  std::optional<Decision> unmatched;             // unset: prompt
  std::optional<Decision> redirects;             // unset: prompt
  std::optional<PermissionSettings> permission;  // the table [permission]; never from a workspace
  bool operator==(const RuleSet&) const = default;
};

enum class Match { kNo, kMaybe, kYes };  // kMaybe: a word that only the run decides, or what may be an option's value, stands there

// Programs match by name: "git" is also "/usr/bin/git"; for `kAllow` only in the system's own directories. What forbids or asks
// also looks past options in front of a word: `git -C DIR push`; where no table says whether one takes the next word, kMaybe.
Match match(const Rule& rule, const shell::SimpleCommand& command) noexcept;

// Errors: kInvalidArgument with the file, the rule and, for an example, what it matched instead.
Result<RuleSet> parse_rules(std::string_view text, std::string_view file, Trust trust);

// Policy keys commands.allow and commands.deny: "git", "git push". A non-empty `allow` forbids what it does not list; its rules
// have the reason kAllowList.
inline constexpr std::string_view kAllowList = "commands.allow";
Result<RuleSet> rules_of(const Commands& commands, const Origin& origin);
// The same two keys of one policy file, each with its line.
Result<RuleSet> rules_of(const policy::Layer& layer);

// `other` joined to `set`: rules add up, the stricter of two settings stands only if `trust` is kWorkspace, else the later one.
void join(RuleSet& set, RuleSet other, Trust trust);

}  // namespace belljar::guard
