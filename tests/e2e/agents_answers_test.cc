// What a person answered to an agent inside holds for its next start inside, and nowhere else.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "support/identity.h"
#include "support/leftovers.h"
#include "support/run.h"
#include "support/temp_dir.h"
#include "support_run.h"

namespace belljar::test {
namespace {

class AgentsAnswers : public Run {
 protected:
  void SetUp() override {
    Run::SetUp();
    home_.write(".claude.json", R"({"mcpServers":{"mine":{}}})");
    if (is_root()) home_.give_to(user_uid(), user_gid());
  }
  std::map<std::string, std::string> environment() const { return {{"HOME", home_.path()}, {"XDG_STATE_HOME", state_.path()}}; }
  Outcome agent(const std::string& name, const std::string& text, std::vector<std::string> more = {}) const {
    std::vector<std::string> args = {"--policy", "agent-" + name, "-c", "cd ~/." + name + "; " + text};
    args.insert(args.begin(), more.begin(), more.end());
    return run_in(args, {.stdin_is = Input::kNull, .env = environment()});
  }
  Outcome forget(const std::string& name) const {
    return belljar({"agents", "forget", name}, {.stdin_is = Input::kNull, .env = environment()});
  }

  TempDir home_{"/var/tmp"};
  TempDir state_{"/var/tmp"};
};

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// As Claude Code does: a file beside, then a rename.
const std::string kTrust =
    R"(printf '{"hasCompletedOnboarding":true,"mcpServers":{"evil":{}},"projects":{"%s":{"hasTrustDialogAccepted":true}}}' )"
    R"("$OLDPWD" > .config.json.new && mv .config.json.new .config.json; )";

TEST_F(AgentsAnswers, ClaudeCodesConfigurationCanBeWrittenAndItsAnswersStay) {
  const Outcome before = agent("claude", "cat .config.json; echo '{\"theme\":\"dark\"}' > settings.json; " + kTrust);
  EXPECT_EQ(before.out, "{\"mcpServers\":{\"mine\":{}}}\n") << before;
  EXPECT_TRUE(holds(before.err, "what you answered to claude holds for its next starts inside")) << before;
  EXPECT_FALSE(holds(before.err, "dropped")) << before;
  EXPECT_TRUE(holds(before.err, "MCP servers that claude was given or lost inside stay as they were")) << before;
  const Outcome after = agent("claude", "cat .config.json settings.json");
  EXPECT_EQ(after.out, "{\"mcpServers\":{\"mine\":{}},\"hasCompletedOnboarding\":true,\"projects\":{\"" + workspace_.path() +
                           "\":{\"hasTrustDialogAccepted\":true}}}\n{\"theme\":\"dark\"}\n")
      << after;
  EXPECT_FALSE(holds(after.err, "answered")) << "said once";
  EXPECT_FALSE(holds(after.err, "MCP")) << "the same ones";
}

// Of two files with content Claude Code says at each start that one of them be moved away.
TEST_F(AgentsAnswers, TheFileThatACopyStandsForIsEmptyInside) {
  EXPECT_EQ(agent("claude", "f=../.claude.json; stat -c '%F %s' $f; cat $f; echo x > $f; cat .config.json").out,
            "regular empty file 0\n{\"mcpServers\":{\"mine\":{}}}\n");
}

TEST_F(AgentsAnswers, TheHostsFilesStayAsTheyAre) {
  agent("claude", "echo '{\"theme\":\"dark\",\"hooks\":{}}' > settings.json; " + kTrust);
  EXPECT_EQ(read_file(home_ / ".claude.json"), R"({"mcpServers":{"mine":{}}})");
  EXPECT_FALSE(exists(home_ / ".claude/.config.json"));
  EXPECT_FALSE(exists(home_ / ".claude/settings.json"));
}

TEST_F(AgentsAnswers, AnotherWorkspaceIsAskedAnew) {
  const TempDir elsewhere{"/var/tmp"};
  if (is_root()) elsewhere.give_to(user_uid(), user_gid());
  agent("codex",
        "printf '[projects.\"%s\"]\\ntrust_level = \"trusted\"\\n[mcp_servers.evil]\\ncommand=\"x\"\\n' \"$OLDPWD\" > config.toml");
  EXPECT_EQ(agent("codex", "cat config.toml").out, "\n[projects.\"" + workspace_.path() + "\"]\ntrust_level = \"trusted\"\n");
  EXPECT_EQ(agent("codex", "cat config.toml", {"--workspace", elsewhere.path()}).out, "");
}

TEST_F(AgentsAnswers, ForgottenOnesAreAskedAnew) {
  agent("gemini", R"(printf '{"%s":"TRUST_FOLDER"}' "$OLDPWD" > trustedFolders.json)");
  EXPECT_TRUE(holds(agent("gemini", "cat trustedFolders.json").out, "TRUST_FOLDER"));
  EXPECT_EQ(forget("gemini").exit_code, 0);
  EXPECT_EQ(agent("gemini", "cat trustedFolders.json").out, "");
  EXPECT_EQ(forget("gemini").exit_code, 0) << "again";
  EXPECT_NE(forget("gemni").exit_code, 0);
}

TEST_F(AgentsAnswers, WhatThePolicyHidesIsNotLaid) {
  EXPECT_EQ(agent("claude", "cat .config.json", {"--hide", home_ / ".claude.json"}).out, "");
}

TEST_F(AgentsAnswers, AnAnswerBesideOtherChangesIsToldAsBefore) {
  const Outcome outcome = agent("claude", "echo '{\"theme\":\"dark\",\"hooks\":{}}' > settings.json");
  EXPECT_TRUE(holds(outcome.err, "one file of claude's own state was changed, and dropped")) << outcome;
}

// The agent finds its usual file then.
TEST_F(AgentsAnswers, WithoutALayerNothingIsLaid) {
  const Outcome outcome = agent("claude", "cat .config.json ../.claude.json", {"--backend", "landlock", "--net", "none"});
  if (holds(outcome.err, "landlock: ")) GTEST_SKIP() << "needs Landlock";
  EXPECT_EQ(outcome.out, R"({"mcpServers":{"mine":{}}})") << outcome;
}

}  // namespace
}  // namespace belljar::test
