#include "policy/profiles.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/built.h"
#include "support_policy.h"

namespace belljar::policy {
namespace {

Result<Effective> effective(std::string_view name) { return merged({*profile_layer(name)}); }

TEST(Profiles, AllAreEmbeddedAsTheyAre) {
  std::string names;
  for (const EmbeddedProfile& profile : embedded_profiles()) {
    names += std::string(profile.name) + " ";
    std::stringstream text;
    text << std::ifstream(std::string(test::kSourceDir) + "/profiles/" + std::string(profile.name) + ".toml").rdbuf();
    EXPECT_EQ(text.str(), profile.toml) << profile.name;
    EXPECT_TRUE(effective(profile.name)) << profile.name;
  }
  EXPECT_EQ(names,
            "agent-claude agent-codex agent-gemini agent-generic agent-opencode build ci-strict dev read-only workspace-write ");
}

TEST(Profiles, WorkspaceWriteByHandEqualsItsFile) {
  for (const EmbeddedProfile& profile : embedded_profiles()) {
    if (profile.name == "workspace-write") {
      EXPECT_EQ(*profile_layer("workspace-write"), *parse_toml(profile.toml, "workspace-write.toml", "workspace-write"));
    }
  }
}

TEST(Profiles, AnUnknownNameOffersTheNearest) {
  const auto missing = profile_layer("agent-cluade");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().what(), "there is no profile `agent-cluade`");
  EXPECT_EQ(missing.error().next(), "did you mean `agent-claude`?");
}

TEST(Profiles, WorkspaceWrite) {
  const auto policy = effective("workspace-write");
  EXPECT_EQ(access_of(policy, "/w/f"), "write");
  EXPECT_EQ(access_of(policy, "/home/u/f"), "read");
  EXPECT_EQ(access_of(policy, "/home/u/.aws/credentials"), "none");
  EXPECT_EQ(policy->policy.network.mode, NetMode::kNone);
  EXPECT_EQ(policy->policy.environment.inherit, Inherit::kCore);
  EXPECT_EQ(policy->policy.limits, Limits());
}

TEST(Profiles, ReadOnly) {
  EXPECT_EQ(access_of(effective("read-only"), "/w/f"), "read");
  EXPECT_EQ(access_of(effective("read-only"), "/home/u/.ssh"), "none");
}

TEST(Profiles, CiStrict) {
  const Policy policy = effective("ci-strict")->policy;
  EXPECT_EQ(policy.filesystem.protect, Protect::kAll);
  EXPECT_EQ(policy.environment.inherit, Inherit::kNone);
  EXPECT_EQ(policy.network.mode, NetMode::kNone);
  EXPECT_EQ(policy.limits.timeout, std::chrono::hours(1));
  EXPECT_EQ(policy.limits.memory, 4_GiB);
  EXPECT_EQ(policy.limits.pids, 1024U);
  EXPECT_FALSE(policy.require.empty());
}

TEST(Profiles, Dev) {
  EXPECT_EQ(effective("dev")->policy.network.allow_local_binding, true);
  EXPECT_EQ(effective("workspace-write")->policy.network.allow_local_binding, std::nullopt);
}

TEST(Profiles, BuildMakesPackageCachesWritable) {
  EXPECT_EQ(access_of(effective("build"), "/home/u/.cargo/registry/x"), "write");
  EXPECT_EQ(access_of(effective("build"), "/home/u/.cargo/credentials.toml"), "none");
  EXPECT_EQ(access_of(effective("build"), "/home/u/.cargo/bin/x"), "read");
  EXPECT_EQ(access_of(effective("build"), "/home/u/.npmrc"), "none");
  EXPECT_EQ(access_of(effective("workspace-write"), "/home/u/.cargo/registry/x"), "read");
}

// What is not named is dropped: tests/e2e/agents_test.cc.
TEST(Profiles, OfAnAgentsStateOnlyWhatIsNamedPersists) {
  const auto written = [](std::string_view profile) {
    const Filesystem files = effective(profile)->policy.filesystem;
    std::vector<std::string> paths = files.scratch;
    for (const FsEntry& entry : files.entries) {
      if (entry.access == Access::kWrite) paths.push_back(entry.path);
    }
    std::string text;
    for (const std::string& path : paths) text += path.substr(std::string_view("/home/u/").size()) + " ";
    return text;
  };
  EXPECT_EQ(written("agent-claude"), ".claude .claude/projects .claude/history.jsonl .claude/.credentials.json ");
  EXPECT_EQ(written("agent-codex"), ".codex .codex/sessions .codex/archived_sessions .codex/history.jsonl .codex/auth.json ");
  EXPECT_EQ(written("agent-gemini"),
            ".gemini .gemini/oauth_creds.json .gemini/gemini-credentials.json .gemini/google_accounts.json ");
  EXPECT_EQ(written("agent-opencode"), ".config/opencode .local/share/opencode .local/state/opencode .cache/opencode ");
  EXPECT_EQ(access_of(effective("agent-claude"), "/home/u/.claude/projects/x.jsonl"), "write");
  EXPECT_EQ(access_of(effective("agent-claude"), "/home/u/.claude/settings.json"), "read");
  EXPECT_EQ(access_of(effective("workspace-write"), "/home/u/.codex/sessions/x"), "read");
}

}  // namespace
}  // namespace belljar::policy
