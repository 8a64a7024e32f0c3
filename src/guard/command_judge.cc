// The judge as the library's decorators take it.
#include <algorithm>
#include <memory>
#include <mutex>

#include "belljar/command_rules.h"
#include "guard/judge.h"
#include "policy/permit.h"
#include "shell/integer_variables.h"
#include "shell/script.h"
#include "shell/wrappers.h"

namespace belljar {
namespace {

// What a shell would be told to do the same; the words of `sh -c TEXT` are taken apart by the judge itself. Variables come first,
// since they can change what a program does (LD_PRELOAD, GIT_SSH_COMMAND).
std::string script_of(const Command& command) {
  std::string text;
  for (const auto& [name, value] : command.env) {
    if (!shell::is_name(name)) return "";
    text += name + "=" + policy::shell_word(value) + " ";
  }
  for (const std::string& word : command.argv) text += policy::shell_word(word) + " ";
  return text;
}

// A shell that runs its standard input, and gets that from whoever started it.
bool reads_what_comes(const guard::CommandVerdict& verdict) {
  const shell::SimpleCommand& command = verdict.command;
  const bool given = !command.upstream.empty() || std::ranges::any_of(command.redirects, [](const shell::Redirect& redirect) {
    return redirect.op.starts_with('<');
  });
  return !given && shell::reads_script_from_stdin(command);
}

// A judge for many threads.
class Shared {
 public:
  explicit Shared(guard::RuleSet rules) : judge_(std::move(rules)) {}
  guard::Verdict judge(const Command& command, const CommandInput& input = {}) {
    const std::string script = script_of(command);
    if (script.empty()) {
      guard::Verdict refused;
      refused.decision = guard::Decision::kForbid;
      return refused;
    }
    const std::lock_guard guard(mutex_);
    guard::Verdict verdict = judge_.judge(script, input.bytes);
    if (input.open && std::ranges::any_of(verdict.commands, reads_what_comes)) {
      verdict.unread.push_back({"what it is told to run comes over a pipe or a terminal, and nobody has seen it", {}});
      verdict.decision = std::max(verdict.decision, guard::Decision::kPrompt);
      verdict.read_only = false;
    }
    return verdict;
  }

 private:
  std::mutex mutex_;
  guard::Judge judge_;  // guarded by mutex_
};

}  // namespace

Result<CommandJudge> command_judge(const Commands& commands, CommandPrompt prompt) {
  guard::RuleSet rules = BELLJAR_TRY(guard::rules_of(commands, Origin{"program", "", 0}));
  if (commands.allow.empty()) rules.unmatched = guard::Decision::kAllow;
  rules.redirects = guard::Decision::kAllow;  // where it may write is the sandbox's to say
  auto shared = std::make_shared<Shared>(std::move(rules));
  return CommandJudge([shared, prompt = std::move(prompt)](const Command& command, const CommandInput& input) {
    const guard::Verdict verdict = shared->judge(command, input);
    if (verdict.decision == guard::Decision::kAllow) return CommandVerdict{};
    std::string why = verdict.reason();
    if (verdict.decision == guard::Decision::kForbid) return CommandVerdict{false, std::move(why), ""};
    if (prompt && prompt(command, why)) return CommandVerdict{};
    return CommandVerdict{false, std::move(why), prompt ? "" : "it needs somebody's word, and nobody is there to be asked"};
  });
}

std::function<bool(const Command&)> reading_commands() {
  auto shared = std::make_shared<Shared>(guard::RuleSet{});
  return [shared](const Command& command) { return shared->judge(command).read_only; };
}

}  // namespace belljar
