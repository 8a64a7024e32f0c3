// Whether a proposed act runs, is asked about, or is refused; and inside the sandbox or outside. The sandbox says what can be done,
// permission says what is asked: this file never weakens the one for the other.
//
// Order: forbidding rules > plan mode > where it would run > approvals of this session > asking rules > mode and `auto_allow`. A
// callback may turn "ask" into an answer; it cannot turn "refuse" into anything.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "guard/judge.h"
#include "guard/permission_settings.h"

namespace belljar::guard {

enum class ToolKind { kRead, kWrite, kExecute };

struct ToolCall {
  std::string tool;  // "bash", "write_file"
  ToolKind kind = ToolKind::kExecute;
  std::string command;                    // of kExecute
  std::string input;                      // as the model gave it, for the callback; a callback may change it
  std::string standard_input;             // of kExecute
  std::vector<std::string> removed = {};  // of kWrite: paths that go with all that is below them
};

// The decision about a proposed act.
enum class Outcome { kRun, kAsk, kRefuse };
// Whether it runs inside of the sandbox.
enum class Confinement { kInside, kOutside };

struct Permission {
  Outcome outcome = Outcome::kAsk;
  Confinement confinement = Confinement::kInside;
  std::string reason;
  std::string warning;  // not empty: to be shown loudly and recorded in the audit trail
  Verdict verdict;      // of kExecute
};

// The answer of a `canUseTool`-like callback.
struct CallbackAnswer {
  enum class Kind { kAllow, kDeny, kAsk };
  Kind kind = Kind::kAsk;
  std::string message;  // of kDeny and kAsk
  std::string input;    // of kAllow: the input to use instead; empty: unchanged
  bool interrupt = false;
};
using CanUseTool = std::function<CallbackAnswer(const ToolCall&, const Permission&)>;

enum class Scope { kSession, kProject, kUser };

class PermissionJudge {
 public:
  // `user`: the rules of the user and built-in ones. Rules of a workspace file are added with kProject and only narrow.
  PermissionJudge(PermissionSettings settings, RuleSet user);

  // Errors: kPermissionDenied when a project's rules would widen.
  Result<void> add_rules(Scope scope, RuleSet rules);
  // "Do not ask again for these words in this session": lifts asking, never a refusal. Errors: kInvalidArgument.
  Result<void> approve(std::string_view prefix);

  Permission decide(const ToolCall& call);
  // The same, then the callback where the answer would be "ask". A changed command is judged anew, and refused if the rules forbid
  // it.
  Permission decide(ToolCall& call, const CanUseTool& callback);

  const PermissionSettings& settings() const noexcept { return settings_; }

 private:
  Permission decide_command(const ToolCall& call);
  Permission decide_removal(const std::vector<std::string>& paths);
  bool is_excluded(const Verdict& verdict) const;
  bool is_approved(const CommandVerdict& command) const;

  PermissionSettings settings_;
  Judge judge_;
  std::vector<Rule> excluded_;
  std::vector<Rule> approved_;
};

std::string_view to_string(PermissionMode mode) noexcept;
std::string_view to_string(Outcome outcome) noexcept;
std::string_view to_string(Confinement confinement) noexcept;

}  // namespace belljar::guard
