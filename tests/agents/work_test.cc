// The four agents of npm do their work in the jar: the first thing that people try. A model of ours asks for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>

#include "support/identity.h"
#include "support_agents.h"

namespace belljar::test {
namespace {

class AgentAtWork : public AgentsOfNpm {
 protected:
  void git(const std::string& text, const std::string& where) const {
    const Outcome done = run({"sh", "-ec", text}, {.cwd = where, .env = {{"HOME", home_.path()}}});
    ASSERT_EQ(done.exit_code, 0) << done;
  }
};
INSTANTIATE_TEST_SUITE_P(Npm, AgentAtWork, testing::ValuesIn(kAgents), [](const auto& each) { return each.param.name; });

TEST_P(AgentAtWork, ACommandOfTheModelsRunsInTheWorkspaceAndNowhereElse) {
  const Leftovers left;
  home_.write(".ssh/id_ed25519", "canary of ssh");
  for (const char* const log_in :
       {".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json", ".local/share/opencode/auth.json"}) {
    home_.write(log_in, "{}");
  }
  const std::string look = "cat ~/.ssh/id_ed25519; echo made > made.txt; echo lost > ~/lost.txt; cat made.txt";
  const Outcome outcome = inside(ask("[[sh " + look + "]]"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_TRUE(says(outcome, "RESULT(")) << outcome;
  EXPECT_EQ(read_file(workspace_ / "made.txt"), "made\n");
  EXPECT_FALSE(exists(home_ / "lost.txt"));
  EXPECT_FALSE(has(model_->asked(), "canary of ssh"));
  EXPECT_TRUE(has(model_->asked(), "Permission denied")) << model_->asked();
  EXPECT_TRUE(says(outcome, agent().name + " runs under its profile (belljar policy show agent-" + agent().name + ")")) << outcome;
  EXPECT_EQ(left.report(), "");
}

TEST_P(AgentAtWork, AHomeThatItWasUsedInBefore) {
  const Outcome outside = bare(ask("hello"));
  EXPECT_TRUE(says(outside, "Hello from the model.")) << outside;
  const std::map<std::string, std::string> before = describe_tree(home_.path());
  const Outcome outcome = inside(ask("[[sh echo made > made.txt; cat made.txt]]"));
  EXPECT_TRUE(says(outcome, "RESULT(")) << outcome;
  // What persists is what the profile names: nothing that a later start runs or obeys.
  for (const auto& [path, what] : describe_tree(home_.path())) {
    const auto old = before.find(path);
    if (old != before.end() && old->second == what) continue;
    bool may = false;
    for (const char* const place :
         {".claude/projects", ".claude/history.jsonl", ".claude/.credentials.json", ".codex/sessions", ".codex/archived_sessions",
          ".codex/history.jsonl", ".codex/auth.json", ".gemini/oauth_creds.json", ".gemini/google_accounts.json"}) {
      may = may || has(path, place);
    }
    EXPECT_TRUE(may) << path << " is " << what;
  }
  const Outcome again = bare(ask("hello again"));
  EXPECT_TRUE(says(again, "Hello from the model.")) << again;
}

TEST_P(AgentAtWork, ASessionGoesOnWhereItsProfileKeepsIt) {
  if (!is(kClaude) && !is(kCodex)) return;  // docs/agents: the others keep none
  EXPECT_TRUE(says(inside(ask("remember the number 4711")), "Hello"));
  const Outcome outcome = is(kClaude) ? inside({"claude", "-c", "-p", "which one?"})
                                      : inside({"codex", "exec", "resume", "--last", "--skip-git-repo-check", "which one?"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  const std::string asked = model_->asked();
  const std::string last = asked.substr(asked.rfind("which one?") - std::min(asked.rfind("which one?"), std::size_t{2000}));
  EXPECT_TRUE(has(last, "remember the number 4711")) << last;
}

constexpr char kNewProject[] =
    "git init -q . && git config user.name A && git config user.email a@b.c && echo x > x && git add x && git commit -qm one && "
    "git log "
    "--format=%s";

TEST_P(AgentAtWork, ANewProject) {
  const Outcome outcome = inside(ask(std::string("[[sh ") + kNewProject + "]]"));
  EXPECT_TRUE(says(outcome, "RESULT(")) << outcome;
  const Outcome log = run(as_user({"git", "log", "--format=%s"}), {.cwd = workspace_.path()});
  EXPECT_EQ(log.out, "one\n") << log << outcome;
}

TEST_P(AgentAtWork, ALinkedWorktree) {
  const std::string tree = workspace_ / "feature";
  workspace_.make_dir("project");
  git("git init -q . && git config user.name A && git config user.email a@b.c && git commit -q --allow-empty -m one && git "
      "worktree add "
      "-q ../feature -b feature",
      workspace_ / "project");
  const Outcome outcome = inside(ask("[[sh echo x > x && git add x && git commit -qm two && git log --format=%s]]"), {}, tree);
  EXPECT_TRUE(says(outcome, "RESULT(")) << outcome;
  const Outcome log = run(as_user({"git", "log", "--format=%s"}), {.cwd = tree});
  EXPECT_EQ(log.out, "two\none\n") << log << outcome;
}

TEST_P(AgentAtWork, ATransactionIsLookedAtFirst) {
  const Outcome outcome = inside(ask("[[sh echo made > made.txt; cat made.txt]]"), {"--txn"});
  EXPECT_TRUE(says(outcome, "RESULT(")) << outcome;
  EXPECT_FALSE(exists(workspace_ / "made.txt"));
  const RunOptions here{.stdin_is = Input::kNull, .cwd = workspace_.path(), .all_env = variables()};
  EXPECT_TRUE(has(belljar({"diff"}, here).out, "made.txt"));
  EXPECT_EQ(belljar({"commit"}, here).exit_code, 0);
  EXPECT_EQ(read_file(workspace_ / "made.txt"), "made\n");
}

TEST_P(AgentAtWork, AToolOfAnMcpServer) {
  const std::string server = home_.write("calc.py", read_file(std::string(kSourceDir) + "/tests/agents/calc.py"));
  const std::string entry = R"({"mcpServers":{"calc":{"command":"python3","args":[")" + server + R"("]}}})";
  Words words = ask("[[tool add {\"a\": 40, \"b\": 2}]]");
  if (is(kClaude)) {
    words.insert(words.begin() + 1, {"--mcp-config", home_.write("mcp.json", entry), "--strict-mcp-config"});
  } else if (is(kCodex)) {
    const Outcome added = bare({"codex", "mcp", "add", "calc", "--", "python3", server});
    ASSERT_EQ(added.exit_code, 0) << added;
  } else if (is(kGemini)) {
    home_.write(".gemini/settings.json",
                entry.substr(0, entry.size() - 1) + R"(,"security":{"auth":{"selectedType":"gemini-api-key"}}})");
  } else {
    std::string config = read_file(home_ / ".config/opencode/opencode.json");
    config.insert(1, R"("mcp":{"calc":{"type":"local","command":["python3",")" + server + R"("]}},)");
    home_.write(".config/opencode/opencode.json", config);
  }
  const Outcome outcome = inside(words);
  EXPECT_TRUE(says(outcome, "the sum is 42")) << outcome << model_->asked();
}

TEST_P(AgentAtWork, ItsOwnSandboxIsOffAndThatIsSaid) {
  if (is(kGemini) || is(kOpencode)) return;  // they have none that is on without being asked for
  home_.write(".claude/settings.json", R"({"sandbox":{"enabled":true,"failIfUnavailable":true}})");
  const Outcome outcome = inside(ask("[[sh echo made > made.txt; cat made.txt]]"));
  EXPECT_TRUE(says(outcome, "its own sandbox off")) << outcome;
  EXPECT_TRUE(exists(workspace_ / "made.txt")) << outcome;
}

// The other way that docs/agents names: both hold.
TEST_P(AgentAtWork, ItsOwnSandboxOnInsideThisOne) {
  if (is(kGemini) || is(kOpencode)) return;
  BELLJAR_NEEDS(program("bwrap"));  // the one that Codex brings does not work inside (docs/agents/codex.md)
  if (is(kClaude)) BELLJAR_NEEDS(program("socat"));
  home_.write(".claude/settings.json", R"({"sandbox":{"enabled":true,"failIfUnavailable":true,"enableWeakerNestedSandbox":true}})");
  Words words = ask("[[sh echo made > made.txt; cat made.txt]]");
  if (is(kCodex)) words.insert(words.begin() + 2, {"--sandbox", "workspace-write"});
  Words options{"--allow-nested-userns"};
  if (is(kClaude)) options.insert(options.end(), {"--accept", "filesystem.globs"});
  const Outcome outcome = inside(words, options);
  EXPECT_FALSE(says(outcome, "its own sandbox off")) << outcome;
  EXPECT_TRUE(exists(workspace_ / "made.txt")) << outcome;
}

}  // namespace
}  // namespace belljar::test
