// `belljar run -- AGENT` takes the agent's profile, by what the program is and where it lies. Stand-ins at the places of the real
// ones; those were tried by hand.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
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

constexpr char kScript[] = "#!/bin/sh\necho key ${OPENAI_API_KEY-none}; cat ~/.codex/auth.json; echo s > ~/.codex/sessions/s\n";

class AgentsStart : public Run {
 protected:
  void SetUp() override {
    Run::SetUp();
    install(programs_);
    home_.write(".codex/auth.json", "token\n");
    hand_over();
  }
  // As npm does.
  static void install(const TempDir& top, const std::string& below = "") {
    top.write(below + "node_modules/@openai/codex/bin/codex.js", kScript, 0755);
    top.make_dir(below + "node_modules/.bin");
    std::filesystem::create_symlink("../@openai/codex/bin/codex.js", top / (below + "node_modules/.bin/codex"));
    ::chmod(top.path().c_str(), 0755);
  }
  void hand_over() const {
    if (!is_root()) return;
    home_.give_to(user_uid(), user_gid());
    workspace_.give_to(user_uid(), user_gid());
  }
  Outcome with_path(const std::string& folder, std::vector<std::string> args, std::map<std::string, std::string> more = {}) const {
    std::map<std::string, std::string> env = {{"HOME", home_.path()},
                                              {"XDG_STATE_HOME", state_.path()},
                                              {"XDG_CONFIG_HOME", home_ / ".config"},
                                              {"OPENAI_API_KEY", "k"},
                                              {"PATH", folder + ":/usr/local/bin:/usr/bin:/bin"}};
    for (const auto& [name, text] : more) env[name] = text;
    return run_in(std::move(args), {.stdin_is = Input::kNull, .env = env});
  }
  Outcome codex(std::vector<std::string> args, std::map<std::string, std::string> more = {}) const {
    return with_path(programs_ / "node_modules/.bin", std::move(args), std::move(more));
  }

  static constexpr char kIts[] = "key k\ntoken\n";
  TempDir programs_{place_of_programs()};
  TempDir home_{"/var/tmp"};
  TempDir state_{"/var/tmp"};
};

bool says(const Outcome& outcome, const std::string& text) { return outcome.err.find(text) != std::string::npos; }

TEST_F(AgentsStart, ARecognisedAgentHasItsProfileAndItIsSaid) {
  const Outcome outcome = codex({"--", "codex"});
  EXPECT_EQ(outcome.out, kIts) << outcome;
  EXPECT_TRUE(says(outcome,
                   "belljar: codex runs under its profile (belljar policy show agent-codex), its own sandbox off; without it: "
                   "--policy workspace-write\n"))
      << outcome;
  EXPECT_EQ(read_file(home_ / ".codex/sessions/s"), "s\n");
  EXPECT_EQ(codex({"--", programs_ / "node_modules/@openai/codex/bin/codex.js"}).out, kIts) << "by its path";
}

// A credential is put in by another program, which `run` becomes.
TEST_F(AgentsStart, ItIsSaidOnceAlsoWithACredential) {
  const std::map<std::string, std::string> key = {{"OPENAI_API_KEY", "a key that is long enough"}};
  const Outcome outcome = codex({"--credential", "OPENAI_API_KEY for api.openai.com", "--", "codex"}, key);
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  const std::string said = "runs under its profile";
  EXPECT_TRUE(says(outcome, said)) << outcome;
  EXPECT_EQ(outcome.err.find(said), outcome.err.rfind(said)) << outcome;
  const Outcome refused =
      codex({"--credential", "OPENAI_API_KEY for api.openai.com", "--", "codex"}, {{"OPENAI_API_KEY", "short"}});
  EXPECT_EQ(refused.exit_code, 125) << refused;
  EXPECT_TRUE(says(refused, "its value has 5 bytes")) << refused;
  EXPECT_TRUE(says(refused, "is it the whole value?")) << refused;
}

TEST_F(AgentsStart, ItsOwnSandboxIsOffWhereThisOneHolds) {
  programs_.write("node_modules/@openai/codex/bin/codex.js", "#!/bin/sh\necho \"$*\"\n", 0755);
  const std::string off = "-c sandbox_mode=\"danger-full-access\" exec hi\n";
  EXPECT_EQ(codex({"--", "codex", "exec", "hi"}).out, off);
  EXPECT_EQ(codex({"--policy", "agent-codex", "--", "codex", "exec", "hi"}).out, off);
  for (const std::string asked : {"--policy=dev", "--allow-nested-userns"}) {
    EXPECT_EQ(codex({asked, "--", "codex", "exec", "hi"}).out, "exec hi\n") << asked;
  }
  EXPECT_EQ(codex({"--", "codex", "--sandbox", "read-only"}).out, "--sandbox read-only\n");
}

TEST_F(AgentsStart, APolicyThatSomebodyGaveStands) {
  const Outcome outcome = codex({"--policy", "workspace-write", "--", "codex"});
  EXPECT_EQ(outcome.out, "key none\n") << outcome;
  EXPECT_FALSE(says(outcome, "profile")) << outcome;
  home_.write(".config/belljar/policy.toml", "profile = \"dev\"\n");
  hand_over();
  EXPECT_EQ(codex({"--", "codex"}).out, "key none\n") << "the user's own file";
  home_.write(".config/belljar/policy.toml", "[limits]\npids = 1000\n");
  hand_over();
  EXPECT_EQ(codex({"--", "codex"}).out, kIts) << "which names no profile";
}

TEST_F(AgentsStart, WhatTheWorkspaceHasUnderThatNameGetsNoRights) {
  install(workspace_);
  hand_over();
  const Outcome outcome = with_path(workspace_ / "node_modules/.bin", {"--", "codex"});
  EXPECT_EQ(outcome.out, "key none\n") << outcome;
  EXPECT_TRUE(says(outcome, "does not get the profile agent-codex")) << outcome;
  EXPECT_EQ(run_in({"--", "./node_modules/.bin/codex"}, {.stdin_is = Input::kNull}).out, "key none\n");
  const std::string shown = workspace_ / "node_modules/.bin/codex";
  EXPECT_EQ(with_path("/bin", {"--", shown}).out, "key none\n") << "by its path";
  EXPECT_EQ(with_path("node_modules/.bin", {"--", "codex"}).out, "key none\n") << "by a relative part of PATH";
}

TEST_F(AgentsStart, ALinkOfTheWorkspaceGetsNoRights) {
  std::filesystem::create_symlink(programs_ / "node_modules/@openai/codex/bin/codex.js", workspace_ / "codex");
  EXPECT_EQ(with_path(workspace_.path(), {"--", "codex"}).out, "key none\n");
  const TempDir beside{place_of_programs()};
  ::chmod(beside.path().c_str(), 0755);
  std::filesystem::create_symlink(programs_ / "node_modules/@openai/codex/bin/codex.js", beside / "codex");
  EXPECT_EQ(with_path(beside.path(), {"--", "codex"}).out, kIts) << "the twin: elsewhere it is a way of installing";
}

TEST_F(AgentsStart, AnInterpreterOfTheWorkspaceGetsNoRights) {
  const std::string script = programs_ / "node_modules/@openai/codex/bin/codex.js";
  workspace_.write("node", "#!/bin/sh\nexec /bin/sh \"$@\"\n", 0755);
  programs_.write("bin/node", "#!/bin/sh\nexec /bin/sh \"$@\"\n", 0755);
  hand_over();
  EXPECT_EQ(with_path(workspace_.path(), {"--", "node", script}).out, "key none\n");
  EXPECT_EQ(with_path(programs_ / "bin", {"--", "node", script}).out, kIts) << "the twin";
}

TEST_F(AgentsStart, WhereverElseCommandsWriteIsNoPlaceForAnAgent) {
  if (is_root() && on_overlay(programs_.path())) GTEST_SKIP() << "needs idmapped mounts";
  EXPECT_EQ(codex({"--write", programs_.path(), "--", "codex"}).out, "key none\n");
  EXPECT_EQ(codex({"--hide", home_ / "nothing", "--", "codex"}).out, kIts) << "the twin";
}

TEST_F(AgentsStart, ThePathOfTheInsideCounts) {
  install(workspace_);
  hand_over();
  const Outcome outcome = codex({"--env", "PATH=" + workspace_ / "node_modules/.bin" + ":/usr/bin:/bin", "--", "codex"});
  EXPECT_EQ(outcome.out, "key none\n") << outcome;
}

TEST_F(AgentsStart, ANamesakeIsNotTheAgent) {
  programs_.write("node_modules/other/bin/codex", kScript, 0755);
  const Outcome outcome = codex({"--", programs_ / "node_modules/other/bin/codex"});
  EXPECT_EQ(outcome.out, "key none\n") << outcome;
  EXPECT_FALSE(says(outcome, "profile")) << outcome;
}

TEST_F(AgentsStart, TheStateIsWhereTheVariableSays) {
  const TempDir other{place_of_programs()};
  const std::string script = "echo s > $CODEX_HOME/sessions/s; echo c > $CODEX_HOME/config.toml && cat $CODEX_HOME/config.toml";
  if (is_root()) other.give_to(user_uid(), user_gid());
  const Outcome outcome = codex({"--policy", "agent-codex", "-c", script}, {{"CODEX_HOME", other / "state"}});
  EXPECT_EQ(outcome.out, "c\n") << outcome;
  EXPECT_EQ(read_file(other / "state/sessions/s"), "s\n");
  EXPECT_FALSE(exists(other / "state/config.toml"));
}

TEST_F(AgentsStart, AHomeThatALinkLeadsToHasItsLogIn) {
  const TempDir other{place_of_programs()};
  std::filesystem::create_symlink(home_.path(), other / "home");
  const std::string script = "cd ~/.codex && cat auth.json && echo h > history.jsonl";
  const std::map<std::string, std::string> env = {{"HOME", other / "home"}};
  const Outcome outcome = codex({"--policy", "agent-codex", "-c", script}, env);
  EXPECT_EQ(outcome.out, "token\n") << outcome;
  EXPECT_EQ(read_file(home_ / ".codex/history.jsonl"), "h\n") << "an absent one, too";
  EXPECT_EQ(codex({"--policy", "agent-claude", "-c", "cat ~/.codex/auth.json"}, {{"HOME", other / "home"}}).out, "");
}

TEST_F(AgentsStart, AnotherAgentsMovedLogInIsHidden) {
  const TempDir other{place_of_programs()};
  other.write("codex/auth.json", "moved\n");
  other.write("codex/notes", "plain\n");
  if (is_root()) other.give_to(user_uid(), user_gid());
  const std::map<std::string, std::string> moved = {{"CODEX_HOME", other / "codex"}};
  const std::string script = "cat " + (other / "codex/notes") + " " + (other / "codex/auth.json");
  for (const char* profile : {"agent-claude", "agent-generic", "workspace-write"}) {
    const Outcome outcome = codex({"--policy", profile, "-c", script}, moved);
    EXPECT_EQ(outcome.out, "plain\n") << profile << outcome;
  }
  EXPECT_EQ(codex({"--policy", "agent-codex", "-c", script}, moved).out, "plain\nmoved\n");
}

// It would be a directory of the workspace, where what a command leaves is obeyed outside.
TEST_F(AgentsStart, StateAtARelativePathIsRefusedByName) {
  const std::string script = "mkdir -p state; echo ran | tee state/config.toml";
  const Outcome outcome = codex({"--policy", "agent-codex", "-c", script}, {{"CODEX_HOME", "state"}});
  EXPECT_EQ(outcome.exit_code, 125) << outcome;
  EXPECT_TRUE(says(outcome, "CODEX_HOME is `state`")) << outcome;
  EXPECT_FALSE(exists(workspace_ / "state"));
  EXPECT_EQ(codex({"--policy", "agent-codex", "-c", script}, {{"CODEX_HOME", workspace_ / "state"}}).out, "ran\n");
  EXPECT_FALSE(exists(workspace_ / "state/config.toml"));
  EXPECT_EQ(codex({"--policy", "agent-claude", "-c", "echo ran"}, {{"CODEX_HOME", "state"}}).out, "ran\n");
}

TEST_F(AgentsStart, AModelOnThisMachineIsHintedAt) {
  const std::map<std::string, std::string> local = {{"OPENAI_BASE_URL", "http://localhost:8080/v1"}};
  EXPECT_TRUE(says(codex({"--", "codex"}, local), "--host-port 8080 lets it"));
  EXPECT_FALSE(says(codex({"--host-port", "8080", "--", "codex"}, local), "lets it"));
  const std::map<std::string, std::string> gateway = {{"OPENAI_BASE_URL", "https://gateway.example/v1"}};
  EXPECT_TRUE(says(codex({"--", "codex"}, gateway), "--allow-domain gateway.example lets it"));
  EXPECT_FALSE(says(codex({"--allow-domain", "gateway.example", "--", "codex"}, gateway), "lets it"));
  EXPECT_FALSE(says(codex({"--policy", "agent-codex", "-c", "true"}, {{"OPENAI_BASE_URL", "nonsense"}}), "lets it"));
}

TEST_F(AgentsStart, NumbersThatOnlyLookLikeSecretsPass) {
  const std::map<std::string, std::string> given = {
      {"CLAUDE_CODE_MAX_OUTPUT_TOKENS", "1"}, {"DISABLE_TELEMETRY", "1"}, {"ANTHROPIC_CUSTOM_HEADERS", "h"}, {"MY_TOKEN", "t"}};
  const std::string script = "echo $CLAUDE_CODE_MAX_OUTPUT_TOKENS $DISABLE_TELEMETRY $ANTHROPIC_CUSTOM_HEADERS ${MY_TOKEN-none}";
  EXPECT_EQ(codex({"--policy", "agent-claude", "-c", script}, given).out, "1 1 h none\n");
}

TEST_F(AgentsStart, PoliciesAreListedAndShownByName) {
  const Outcome listed = belljar({"policy", "list"});
  EXPECT_EQ(listed.exit_code, 0);
  EXPECT_TRUE(listed.out.find("\nagent-codex      Codex: ") != std::string::npos) << listed;
  EXPECT_TRUE(listed.out.find("\nworkspace-write  The default: ") != std::string::npos) << listed;
  EXPECT_NE(belljar({"policy", "list", "--json"}).out.find("{\"name\":\"read-only\",\"summary\":\"For analysis"),
            std::string::npos);
  const RunOptions here{.cwd = workspace_.path()};
  const std::string codex = "agent-codex";
  const auto show = [&](std::vector<std::string> which) {
    which.insert(which.begin(), {"policy", "show"});
    return belljar(which, here).out;
  };
  EXPECT_EQ(show({codex}), show({"--policy", codex}));
  EXPECT_EQ(belljar({"policy", "show", "agent-cdoex"}, here).exit_code, 125);
  EXPECT_EQ(belljar({"policy", "show", "dev", "--policy", "build"}, here).exit_code, 125);
}

}  // namespace
}  // namespace belljar::test
