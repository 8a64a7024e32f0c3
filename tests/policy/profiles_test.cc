#include "policy/profiles.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

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
  EXPECT_EQ(names, "agent-claude agent-codex build ci-strict dev read-only workspace-write ");
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

TEST(Profiles, AgentsWriteTheirStateAndNotTheirSettings) {
  EXPECT_EQ(access_of(effective("agent-claude"), "/home/u/.claude/projects/x.jsonl"), "write");
  EXPECT_EQ(access_of(effective("agent-claude"), "/home/u/.claude/settings.json"), "read");
  EXPECT_EQ(access_of(effective("agent-claude"), "/home/u/.claude/hooks/x"), "read");
  EXPECT_EQ(access_of(effective("agent-codex"), "/home/u/.codex/sessions/x"), "write");
  EXPECT_EQ(access_of(effective("agent-codex"), "/home/u/.codex/config.toml"), "read");
  EXPECT_EQ(access_of(effective("agent-codex"), "/home/u/.codex/rules/default.rules"), "read");
  EXPECT_EQ(access_of(effective("workspace-write"), "/home/u/.codex/sessions/x"), "read");
}

}  // namespace
}  // namespace belljar::policy
