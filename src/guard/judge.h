// What command rules say of a script: a decision for each simple command, with everything that spoke about it. The strictest wins.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "guard/hazards.h"
#include "guard/rules.h"
#include "shell/script.h"

namespace belljar::guard {

struct CommandVerdict {
  shell::SimpleCommand command;
  Decision decision = Decision::kPrompt;
  std::vector<Finding> findings;  // strictest first
  bool read_only = false;
  std::string not_read_only;  // why, when it is not
};

struct Verdict {
  Decision decision = Decision::kPrompt;
  std::vector<CommandVerdict> commands;
  std::vector<shell::Unread> unread;
  // Every command is known to only read and nothing is unread: what plan mode lets through.
  bool read_only = false;
  // One sentence for who is asked or refused: the strictest finding.
  std::string reason() const;
};

// Owns a parser; one thread at a time. An empty text is allowed: it does nothing.
class Judge {
 public:
  explicit Judge(RuleSet rules) : rules_(std::move(rules)) {}
  // `input`: what it reads from its standard input.
  Verdict judge(std::string_view text, std::string_view input = {});
  const RuleSet& rules() const noexcept { return rules_; }

 private:
  CommandVerdict judge_command(const shell::Script& script, const shell::SimpleCommand& command) const;

  RuleSet rules_;
  shell::ShellReader reader_;
};

// For people, and as one JSON object.
std::string to_text(const Verdict& verdict, std::string_view script);
std::string to_json_text(const Verdict& verdict, std::string_view script);

}  // namespace belljar::guard
