#include "guard/permission.h"

#include <gtest/gtest.h>

#include "guard/support_rules.h"

namespace belljar::guard {
namespace {

using Mode = PermissionMode;
using State = SandboxState;

std::string text(const Permission& permission) {
  return std::string(to_string(permission.outcome)) + " " + std::string(to_string(permission.confinement)) +
         (permission.warning.empty() ? "" : " warned");
}

std::string decided(PermissionSettings settings, std::string command, RuleSet rules = {}) {
  PermissionJudge judge(std::move(settings), std::move(rules));
  return text(judge.decide({.tool = "bash", .command = std::move(command)}));
}

// Document 004, "sandbox and permission combined", first its four rows, then the rest of the space.
TEST(Permission, TruthTableOfTheDocument) {
  struct Row {
    State sandbox;
    bool auto_allow;
    Mode mode;
    const char* make;    // no rule speaks about it
    const char* ls;      // known to only read
    const char* sudo;    // forbidden by a check
    const char* unread;  // cannot be judged
  };
  constexpr Row kRows[] = {
      // What the document says.
      {State::kOn, true, Mode::kDefault, "run inside", "run inside", "refuse inside", "ask inside"},
      {State::kOn, false, Mode::kDefault, "ask inside", "ask inside", "refuse inside", "ask inside"},
      {State::kOff, false, Mode::kYolo, "run outside warned", "run outside warned", "refuse inside", "run outside warned"},
      {State::kOff, false, Mode::kDefault, "ask outside warned", "ask outside warned", "refuse inside", "ask outside warned"},
      // What it leaves open.
      {State::kOff, true, Mode::kDefault, "ask outside warned", "ask outside warned", "refuse inside", "ask outside warned"},
      {State::kOff, true, Mode::kYolo, "run outside warned", "run outside warned", "refuse inside", "run outside warned"},
      {State::kOn, false, Mode::kYolo, "run inside", "run inside", "refuse inside", "run inside"},
      {State::kOn, true, Mode::kYolo, "run inside", "run inside", "refuse inside", "run inside"},
      {State::kOn, false, Mode::kAutoEdit, "ask inside", "ask inside", "refuse inside", "ask inside"},
      {State::kOn, true, Mode::kAutoEdit, "run inside", "run inside", "refuse inside", "ask inside"},
      {State::kOn, false, Mode::kPlan, "refuse inside", "run inside", "refuse inside", "refuse inside"},
      {State::kOn, true, Mode::kPlan, "refuse inside", "run inside", "refuse inside", "refuse inside"},
      {State::kOff, false, Mode::kPlan, "refuse inside", "run outside warned", "refuse inside", "refuse inside"},
      {State::kUnavailable, true, Mode::kDefault, "refuse inside", "refuse inside", "refuse inside", "refuse inside"},
      {State::kUnavailable, false, Mode::kYolo, "refuse inside", "refuse inside", "refuse inside", "refuse inside"},
  };
  for (const Row& row : kRows) {
    const PermissionSettings settings{.mode = row.mode, .sandbox = row.sandbox, .auto_allow_bash_if_sandboxed = row.auto_allow};
    const std::string where = std::string(to_string(row.mode)) + " sandbox " + std::to_string(static_cast<int>(row.sandbox)) +
                              (row.auto_allow ? " auto" : "");
    EXPECT_EQ(decided(settings, "make"), row.make) << where;
    EXPECT_EQ(decided(settings, "ls"), row.ls) << where;
    EXPECT_EQ(decided(settings, "sudo ls"), row.sudo) << where;
    EXPECT_EQ(decided(settings, "eval \"$x\""), row.unread) << where;
  }
}

TEST(Permission, UnavailableSandboxFailsClosedUnlessSaidOtherwise) {
  EXPECT_EQ(decided({.sandbox = State::kUnavailable, .auto_allow_bash_if_sandboxed = true}, "make"), "refuse inside");
  EXPECT_EQ(
      decided({.sandbox = State::kUnavailable, .auto_allow_bash_if_sandboxed = true, .allow_unsandboxed_commands = true}, "make"),
      "ask outside warned")
      << "what nothing holds is not auto-allowed";
  EXPECT_EQ(decided({.mode = Mode::kYolo, .sandbox = State::kUnavailable, .allow_unsandboxed_commands = true}, "make"),
            "run outside warned");
}

TEST(Permission, FilesByMode) {
  const auto write = [](Mode mode) {
    PermissionJudge judge({.mode = mode}, {});
    return std::string(to_string(judge.decide({.tool = "write_file", .kind = ToolKind::kWrite}).outcome));
  };
  EXPECT_EQ(write(Mode::kDefault), "ask");
  EXPECT_EQ(write(Mode::kAutoEdit), "run");
  EXPECT_EQ(write(Mode::kPlan), "refuse");
  EXPECT_EQ(write(Mode::kYolo), "run");
  PermissionJudge plan({.mode = Mode::kPlan}, {});
  EXPECT_EQ(plan.decide({.tool = "read_file", .kind = ToolKind::kRead}).outcome, Outcome::kRun);
}

TEST(Permission, ExcludedCommandsAreJudgedPartByPart) {
  const PermissionSettings settings{.auto_allow_bash_if_sandboxed = true, .excluded_commands = {"docker", "npm run test:*"}};
  EXPECT_EQ(decided(settings, "docker ps"), "ask outside warned");
  EXPECT_EQ(decided(settings, "npm run test -- -u"), "ask outside warned");
  EXPECT_EQ(decided(settings, "npm run build"), "run inside");
  EXPECT_EQ(decided(settings, "docker ps; rm -r build"), "run inside") << "the rest of a compound keeps all of it inside";
  EXPECT_EQ(decided(settings, "docker ps $(make)"), "run inside");
  EXPECT_EQ(decided(settings, "docker ps; eval \"$x\""), "ask inside");
  EXPECT_EQ(decided(settings, "./docker ps"), "run inside") << "a program of the workspace is not docker";
}

TEST(Permission, RulesAllowAskAndRefuse) {
  const RuleSet set = rules(
      "[[rule]]\npattern = [\"make\"]\ndecision = \"allow\"\n[[rule]]\npattern = [\"git\", \"push\"]\ndecision = \"prompt\"\n");
  EXPECT_EQ(decided({}, "make", set), "run inside");
  EXPECT_EQ(decided({}, "make; ls", set), "ask inside") << "each part needs its rule";
  EXPECT_EQ(decided({.auto_allow_bash_if_sandboxed = true}, "git push", set), "ask inside") << "a rule that asks is not skipped";
  EXPECT_EQ(decided({.auto_allow_bash_if_sandboxed = true}, "git pull", set), "run inside");
  EXPECT_EQ(decided({.ask_for_reads = false}, "ls | head", {}), "run inside");
}

TEST(Permission, ApprovalOfASessionLiftsAskingOnly) {
  PermissionJudge judge({}, rules("[[rule]]\npattern = [\"git\", \"push\"]\ndecision = \"prompt\"\n"));
  EXPECT_EQ(text(judge.decide({.command = "git push"})), "ask inside");
  ASSERT_TRUE(judge.approve("git push"));
  EXPECT_EQ(text(judge.decide({.command = "git push origin"})), "run inside");
  EXPECT_EQ(text(judge.decide({.command = "git push; make"})), "ask inside");
  ASSERT_TRUE(judge.approve("sudo"));
  EXPECT_EQ(text(judge.decide({.command = "sudo ls"})), "refuse inside");
  EXPECT_FALSE(judge.approve("a; b"));
}

TEST(Permission, ProjectRulesMayOnlyNarrow) {
  PermissionJudge judge({.auto_allow_bash_if_sandboxed = true}, {});
  EXPECT_FALSE(judge.add_rules(Scope::kProject, rules("[[rule]]\npattern = [\"make\"]\ndecision = \"allow\"\n")));
  EXPECT_FALSE(judge.add_rules(Scope::kProject, rules("disable = [\"sudo\"]\n")));
  EXPECT_EQ(text(judge.decide({.command = "make"})), "run inside");
  ASSERT_TRUE(judge.add_rules(Scope::kProject, rules("[[rule]]\npattern = [\"make\"]\ndecision = \"forbid\"\n")));
  EXPECT_EQ(text(judge.decide({.command = "make"})), "refuse inside");
  EXPECT_TRUE(judge.add_rules(Scope::kUser, rules("[[rule]]\npattern = [\"make\"]\ndecision = \"allow\"\n")));
  EXPECT_EQ(text(judge.decide({.command = "make"})), "refuse inside") << "the strictest wins";
}

TEST(Permission, CallbackAnswersWhereItWouldAsk) {
  PermissionJudge judge({}, {});
  const auto answer = [&](std::string command, CallbackAnswer given) {
    ToolCall call{.tool = "bash", .command = std::move(command)};
    const Permission permission = judge.decide(call, [&](const ToolCall&, const Permission&) { return given; });
    return text(permission) + ": " + call.command + ": " + permission.reason;
  };
  EXPECT_EQ(answer("make", {.kind = CallbackAnswer::Kind::kAllow}), "run inside: make: was allowed by the callback");
  EXPECT_EQ(answer("make", {.kind = CallbackAnswer::Kind::kDeny, .message = "not today"}), "refuse inside: make: not today");
  EXPECT_EQ(answer("make", {.kind = CallbackAnswer::Kind::kAsk, .message = "sure?"}), "ask inside: make: sure?");
  EXPECT_EQ(answer("make", {.kind = CallbackAnswer::Kind::kAllow, .input = "make -n"}),
            "run inside: make -n: was allowed by the callback");
  EXPECT_EQ(answer("make", {.kind = CallbackAnswer::Kind::kAllow, .input = "sudo make"}).substr(0, 13), "refuse inside")
      << "what it changed is judged anew";
  EXPECT_EQ(answer("sudo make", {.kind = CallbackAnswer::Kind::kAllow}).substr(0, 13), "refuse inside")
      << "a refusal is not asked about";
}

// `delete {".git"}` is `rm -rf .git`.
TEST(Permission, WhatAToolRemovesIsJudgedAsACommandWouldBe) {
  const auto removal = [](Mode mode, std::vector<std::string> paths, RuleSet rules = {}) {
    PermissionJudge judge({.mode = mode, .auto_allow_bash_if_sandboxed = true}, std::move(rules));
    return std::string(to_string(judge.decide({.tool = "delete", .kind = ToolKind::kWrite, .removed = std::move(paths)}).outcome));
  };
  for (const char* path : {".git", "./.git/", "/home/me/project/.git", "."})
    EXPECT_EQ(removal(Mode::kAutoEdit, {path}), "ask") << path;
  EXPECT_EQ(removal(Mode::kAutoEdit, {"/"}), "refuse");
  for (const char* path : {"a", ".gitignore", "it's here", "-rf", "build/x y"})
    EXPECT_EQ(removal(Mode::kAutoEdit, {path}), "run") << path;
  EXPECT_EQ(removal(Mode::kYolo, {".git"}), "run");
  EXPECT_EQ(removal(Mode::kPlan, {"a"}), "refuse");
  EXPECT_EQ(removal(Mode::kDefault, {"a"}), "ask");
  // A list of allowed commands says nothing of tools; a rule about rm does.
  EXPECT_EQ(removal(Mode::kAutoEdit, {"a"}, rules_of({.allow = {"make"}, .deny = {}}, {}).value()), "run");
  EXPECT_EQ(removal(Mode::kAutoEdit, {"a"}, rules_of({.allow = {}, .deny = {"rm"}}, {}).value()), "refuse");
}

}  // namespace
}  // namespace belljar::guard
