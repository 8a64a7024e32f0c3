#include "policy/agents.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

#include "policy/profiles.h"
#include "policy/schema.h"
#include "support_policy.h"

namespace belljar::policy {
namespace {

std::string_view whose(std::string_view file) {
  const Agent* const agent = find_agent_of_program(file);
  return agent == nullptr ? "nobody's" : agent->name;
}

TEST(Agents, AProgramIsKnownByThePackageThatItLiesIn) {
  EXPECT_EQ(whose("/usr/lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe"), "claude");
  EXPECT_EQ(whose("/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js"), "claude");
  EXPECT_EQ(whose("/n/node_modules/@anthropic-ai/claude-code-linux-x64/claude"), "claude");
  EXPECT_EQ(whose("/usr/lib/node_modules/@openai/codex/bin/codex.js"), "codex");
  EXPECT_EQ(whose("/n/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/codex/codex"), "codex");
  EXPECT_EQ(whose("/p/node_modules/.pnpm/@google+gemini-cli@0.61.0/node_modules/@google/gemini-cli/bundle/gemini.js"), "gemini");
  EXPECT_EQ(whose("/usr/lib/node_modules/opencode-ai/bin/opencode.exe"), "opencode");
  EXPECT_EQ(whose("/n/node_modules/opencode-linux-x64/bin/opencode"), "opencode");
}

TEST(Agents, AProgramWithoutAPackageIsKnownByItsName) {
  EXPECT_EQ(whose("/home/u/.local/share/claude/versions/2.1.197"), "claude");
  EXPECT_EQ(whose("/home/u/.cargo/bin/codex"), "codex");
  EXPECT_EQ(whose("/usr/local/bin/codex-x86_64-unknown-linux-musl"), "codex");
  EXPECT_EQ(whose("/home/u/.opencode/bin/opencode"), "opencode");
}

TEST(Agents, OthersAreNobodys) {
  EXPECT_EQ(whose("/usr/bin/true"), "nobody's");
  EXPECT_EQ(whose("/usr/bin/claude-desktop"), "nobody's");
  EXPECT_EQ(whose("/n/node_modules/evil/bin/claude"), "nobody's");
  EXPECT_EQ(whose("/n/node_modules/@openai/codex/node_modules/evil/cli.js"), "nobody's");
  EXPECT_EQ(whose("/n/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/path/rg"), "nobody's");
  EXPECT_EQ(whose("/n/node_modules/@anthropic-ai/claude-code-evil/cli.js"), "nobody's");
  EXPECT_EQ(whose(""), "nobody's");
}

TEST(Agents, EachHasItsProfile) {
  for (const Agent& agent : agents()) {
    EXPECT_TRUE(profile_layer(agent.profile)) << agent.profile;
    EXPECT_EQ(find_agent_of_profile(agent.profile), &agent);
  }
  EXPECT_EQ(find_agent_of_profile("agent-generic"), nullptr);
}

Result<Effective> moved(std::string_view profile, const std::map<std::string, std::string>& variables) {
  Layer layer = *profile_layer(profile);
  move_state(layer, [&](const char* name) { return variables.contains(name) ? variables.at(name) : std::string(); });
  return merged({layer});
}

TEST(Agents, TheStateLiesWhereTheAgentsVariableSays) {
  const auto codex = moved("agent-codex", {{"CODEX_HOME", "/srv/codex/"}});
  EXPECT_EQ(codex->policy.filesystem.scratch, (std::vector<std::string>{"/home/u/.codex", "/srv/codex"}));
  EXPECT_EQ(access_of(codex, "/srv/codex/sessions/x"), "write");
  EXPECT_EQ(access_of(codex, "/home/u/.codex/sessions/x"), "read");
  EXPECT_EQ(access_of(codex, "/home/u/.codex/auth.json"), "none");
  const auto claude = moved("agent-claude", {{"CLAUDE_CONFIG_DIR", "/srv/[c]"}});
  EXPECT_EQ(access_of(claude, "/srv/[c]/projects/x/memory/m"), "read");
  EXPECT_EQ(access_of(claude, "/srv/[c]/projects/x/t.jsonl"), "write");
  EXPECT_EQ(moved("agent-opencode", {{"XDG_DATA_HOME", "/d"}})->policy.filesystem.scratch.back(), "/d/opencode");
}

TEST(Agents, AVariableThatNamesNoPlaceMovesNothing) {
  for (const std::string given : {"", "relative", "/", "//"}) {
    EXPECT_EQ(moved("agent-codex", {{"CODEX_HOME", given}})->policy.filesystem.scratch, std::vector<std::string>{"/home/u/.codex"});
  }
  EXPECT_EQ(moved("agent-claude", {{"CODEX_HOME", "/srv"}})->policy.filesystem.scratch,
            std::vector<std::string>{"/home/u/.claude"});
}

TEST(Agents, ItsOwnSandboxIsSwitchedOffUnlessItIsSpokenOf) {
  using Words = std::vector<std::string>;
  const Agent& codex = *find_agent_of_profile("agent-codex");
  EXPECT_EQ(without_own_sandbox(codex, {"exec", "hi"}), (Words{"-c", "sandbox_mode=\"danger-full-access\"", "exec", "hi"}));
  EXPECT_EQ(without_own_sandbox(codex, {"--sandbox", "read-only"}), (Words{"--sandbox", "read-only"}));
  EXPECT_EQ(without_own_sandbox(codex, {"--sandbox=read-only"}), (Words{"--sandbox=read-only"}));
  EXPECT_EQ(without_own_sandbox(codex, {"-c", "sandbox_mode=\"read-only\""}), (Words{"-c", "sandbox_mode=\"read-only\""}));
  const Agent& claude = *find_agent_of_profile("agent-claude");
  EXPECT_EQ(without_own_sandbox(claude, {}), (Words{"--settings", "{\"sandbox\":{\"enabled\":false}}"}));
  EXPECT_EQ(without_own_sandbox(claude, {"--version"}), (Words{"--version"})) << "nothing starts";
  EXPECT_EQ(without_own_sandbox(claude, {"--settings", "f.json"}), (Words{"--settings", "f.json"}));
  EXPECT_EQ(without_own_sandbox(claude, {"-s"}).size(), 3U) << "another agent's option";
  EXPECT_EQ(without_own_sandbox(*find_agent_of_profile("agent-gemini"), {"-p"}), Words{"-p"});
}

TEST(Agents, WhatOnlyServesARunIsKnown) {
  const Agent& claude = *find_agent_of_profile("agent-claude");
  EXPECT_TRUE(is_private_to_run(claude, "/shell-snapshots/x.sh"));
  EXPECT_FALSE(is_private_to_run(claude, "/settings.json"));
  EXPECT_FALSE(is_private_to_run(claude, "/skills/shell-snapshots"));
  EXPECT_TRUE(is_private_to_run(claude, "/plugins/store/cc-plugin-agents-md_builtin-0123.json"));
  EXPECT_FALSE(is_private_to_run(claude, "/plugins/store/mine-0123.json"));
  EXPECT_FALSE(is_private_to_run(claude, "/plugins/installed_plugins.json"));
  const Agent& codex = *find_agent_of_profile("agent-codex");
  EXPECT_TRUE(is_private_to_run(codex, "/state_5.sqlite-wal"));
  EXPECT_TRUE(is_private_to_run(codex, "/skills/.system/x/SKILL.md"));
  EXPECT_FALSE(is_private_to_run(codex, "/skills/mine/SKILL.md"));
}

TEST(Agents, EachReadsItsOwnLogInAlone) {
  const std::map<std::string, std::string> log_ins = {{".claude/.credentials.json", "agent-claude"},
                                                      {".claude.json", "agent-claude"},
                                                      {".claude/backups/.claude.json.backup.1", "agent-claude"},
                                                      {".claude.json.backup", "agent-claude"},
                                                      {".codex/auth.json", "agent-codex"},
                                                      {".codex/.credentials.json", "agent-codex"},
                                                      {".codex/.env", "agent-codex"},
                                                      {".gemini/mcp-oauth-tokens.json", "agent-gemini"},
                                                      {".gemini/.env", "agent-gemini"},
                                                      {".local/share/opencode/mcp-auth.json", "agent-opencode"},
                                                      {".local/share/opencode/opencode.db", "agent-opencode"},
                                                      {".gemini/oauth_creds.json", "agent-gemini"},
                                                      {".gemini/gemini-credentials.json", "agent-gemini"},
                                                      {".local/share/opencode/auth.json", "agent-opencode"}};
  for (const auto& [name, owner] : log_ins) {
    for (const EmbeddedProfile& profile : embedded_profiles()) {
      Layer base = *profile_layer(profile.name);
      base.settings.push_back({find_key("profile"), std::string(profile.name), {}, {}});
      const std::string access = access_of(merged({base}), "/home/u/" + name);
      EXPECT_EQ(access == "none", profile.name != owner) << name << " " << profile.name;
    }
  }
}

// As it is at the usual place: of all profiles the owner's alone shows it.
TEST(Agents, AMovedLogInIsItsOwnersAlone) {
  const std::map<std::string, std::string> variables = {
      {"CODEX_HOME", "/a/codex"}, {"CLAUDE_CONFIG_DIR", "rel"}, {"XDG_DATA_HOME", "/a/data"}, {"GEMINI_CLI_HOME", "/a/g"}};
  const auto variable = [&](const char* name) { return variables.contains(name) ? variables.at(name) : std::string(); };
  const std::map<std::string, std::string> log_ins = {{"/a/codex/auth.json", "agent-codex"},
                                                      {"/a/codex/.credentials.json", "agent-codex"},
                                                      {"/w/sub/rel/.credentials.json", "agent-claude"},
                                                      {"/w/sub/rel/.claude.json", "agent-claude"},
                                                      {"/w/sub/rel/.config.json", "agent-claude"},
                                                      {"/a/g/.gemini/oauth_creds.json", "agent-gemini"},
                                                      {"/a/data/opencode/auth.json", "agent-opencode"}};
  MergeContext context = place();
  context.log_ins = moved_log_ins(context.cwd, variable);
  for (const auto& [path, owner] : log_ins) {
    for (const EmbeddedProfile& profile : embedded_profiles()) {
      Layer base = *profile_layer(profile.name);
      move_state(base, variable);
      base.settings.push_back({find_key("profile"), std::string(profile.name), {}, {}});
      EXPECT_EQ(access_of(merged({base}, context), path) == "none", profile.name != owner) << path << " " << profile.name;
    }
  }
}

TEST(Agents, AVariableFromTheCurrentDirectoryIsNamed) {
  const auto variable = [](const char* name) { return std::string(name) == "CODEX_HOME" ? "state" : "/full"; };
  EXPECT_STREQ(relative_variable("agent-codex", variable), "CODEX_HOME");
  EXPECT_EQ(relative_variable("agent-claude", variable), nullptr);
  EXPECT_EQ(relative_variable("workspace-write", variable), nullptr);
}

}  // namespace
}  // namespace belljar::policy
