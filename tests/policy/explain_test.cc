#include "policy/explain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "policy/profiles.h"
#include "policy/schema.h"
#include "support/has.h"
#include "support_policy.h"

namespace belljar::policy {
namespace {

using test::has;

// Origins differ (they name the shown text); everything else must not.
Policy without_origins(Policy policy) {
  for (FsEntry& entry : policy.filesystem.entries) entry.origin = {};
  for (Volume& volume : policy.filesystem.volumes) volume.origin = {};
  std::ranges::sort(policy.filesystem.entries, {}, [](const FsEntry& entry) { return std::pair(entry.path, entry.glob); });
  return policy;
}

TEST(Explain, ShowReadsBackToTheSamePolicyInBothFormats) {
  for (const EmbeddedProfile& profile : embedded_profiles()) {
    const auto effective =
        merged({*profile_layer(profile.name), layer("user",
                                                    "[limits]\ntimeout = \"250ms\"\ncpus = 1.5\n[network]\npublish = "
                                                    "[80]\n[environment]\nset = { \"a b\" = \"x\\\"y\\n\" }\n"
                                                    "[[filesystem.entries]]\nglob = \"**/*.key\"\naccess = "
                                                    "\"none\"\n[[filesystem.volumes]]\nsource = \"/v\"\ntarget = \"/t\"\n")});
    ASSERT_TRUE(effective) << effective.error().line();
    for (const bool json : {false, true}) {
      const std::string text = json ? to_json_text(*effective) : to_toml_text(*effective);
      const auto parsed = parse_policy(text, json ? "x.json" : "x.toml", "user");
      ASSERT_TRUE(parsed) << parsed.error().line() << parsed.error().excerpt() << text;
      const auto again = merged({*parsed});
      ASSERT_TRUE(again) << again.error().line();
      Policy left = without_origins(again->policy), right = without_origins(effective->policy);
      left.profile = right.profile;
      EXPECT_EQ(left, right) << profile.name << text;
    }
  }
}

TEST(Explain, EachValueShowsItsLine) {
  const auto effective = merged({layer(
      "user", "[limits]\npids = 7\n[filesystem]\nwritable_roots = [\n  \"/a\",\n  \"/b\" ]\n[environment]\nexclude = [\"X\"]\n")});
  const std::string text = explain_text(*effective);
  EXPECT_TRUE(has(text, "limits.pids = 7  # user user.toml:2\n")) << text;
  EXPECT_TRUE(has(text, "filesystem.entries += write /a  # user user.toml:5\n")) << text;
  EXPECT_TRUE(has(text, "filesystem.entries += write /b  # user user.toml:6\n")) << text;
  EXPECT_TRUE(has(text, "environment.exclude += \"X\"  # user user.toml:8\n")) << text;
  EXPECT_TRUE(has(text, "environment.exclude += \"AWS_*\"  # built-in\n")) << text;
  EXPECT_TRUE(
      has(explain_json(*effective), R"({"key":"limits.pids","value":7,"origin":{"layer":"user","file":"user.toml","line":2}})"));
}

TEST(Explain, TheDefaultSecretsAreOneLineUnlessEachIsAskedFor) {
  const auto effective = merged({layer("user", "blocked_paths = [\"/mine\"]\n")});
  const std::string few = explain_text(*effective), all = explain_text(*effective, ShownSecrets::kEach);
  EXPECT_TRUE(has(few, " secrets: ")) << few;
  EXPECT_TRUE(has(few, "policy explain --all)  # default secrets\n")) << few;
  EXPECT_FALSE(has(few, "+= none  /home/u/.netrc")) << few;
  EXPECT_TRUE(has(all, "+= none  /home/u/.netrc  # default secrets\n")) << all;
  for (const std::string& text : {few, all}) EXPECT_TRUE(has(text, "+= none  /mine  # user user.toml:1\n")) << text;
  EXPECT_TRUE(has(explain_json(*effective), "/home/u/.netrc"));
}

TEST(Explain, APathNamesTheWinningRule) {
  const auto effective = merged({layer("user", "writable_roots = [\"/a\"]\nblocked_paths = [\"/a/b\"]\n")});
  const auto hidden = explain_path(*effective, place(), "/a/b/../b/c");
  ASSERT_TRUE(hidden);
  EXPECT_EQ(
      to_text(*hidden),
      "/a/b/c: none\n  rule:  none /a/b  # user user.toml:2\n  below: write /a  # user user.toml:1\n  below: read /  # built-in\n");
  EXPECT_EQ(to_text(*explain_path(*effective, place(), "x")),
            "/w/sub/x: write\n  rule:  write /w  # built-in\n  below: read /  # built-in\n");
  EXPECT_TRUE(has(to_text(*explain_path(*effective, place(), "/tmp/x")), "/tmp is private to the sandbox: writable, up to 1GiB"));
  EXPECT_TRUE(has(to_text(*explain_path(*effective, place(), "/w/.git/hooks")), "`.git` is a protected name"));
  EXPECT_TRUE(has(to_text(*explain_path(*effective, place(), "~/.npm/x")), "a cache: writes go to a layer"));
  EXPECT_FALSE(explain_path(*effective, place(), ""));
}

// /w/sub/link is a link to /w/sub/real, /out to /target: as realpath(3) would say.
std::string through_links(const std::string& path) {
  for (const auto& [link, target] : {std::pair<std::string, std::string>{"/w/sub/link", "/w/sub/real"}, {"/out", "/target"}}) {
    if (path == link || path.starts_with(link + "/")) return target + path.substr(link.size());
  }
  return path;
}

TEST(Explain, RulesAndPathsMeanWhatTheirLinksLeadTo) {
  const auto says = [](const std::string& rules, const std::string& path) {
    const auto effective = merged({layer("user", rules)});
    return to_text(*explain_path(*effective, place(), path, through_links));
  };
  const std::string hide_link = "blocked_paths = [\"/w/sub/link\"]\n";
  EXPECT_TRUE(has(says(hide_link, "real/f"), "/w/sub/real/f: none\n  rule:  none /w/sub/link -> /w/sub/real  #"));
  EXPECT_TRUE(has(says(hide_link, "link/f"), "/w/sub/link/f -> /w/sub/real/f: none\n"));
  EXPECT_TRUE(has(says("blocked_paths = [\"/w/sub/real\"]\n", "link/f"), "/w/sub/link/f -> /w/sub/real/f: none\n"));
  EXPECT_TRUE(has(says("[[filesystem.entries]]\npath = \"/w/sub/link\"\naccess = \"read\"\n", "real/f"), "/w/sub/real/f: read\n"));
  EXPECT_TRUE(has(says("writable_roots = [\"/out\"]\n", "/target/f"), "/target/f: write\n"));
  // Twins: another name, and paths as they stand where nobody resolves them.
  EXPECT_TRUE(has(says(hide_link, "other/f"), "/w/sub/other/f: write\n"));
  EXPECT_TRUE(has(says("", "/target/f"), "/target/f: read\n"));
  const auto effective = merged({layer("user", hide_link)});
  EXPECT_TRUE(has(to_text(*explain_path(*effective, place(), "real/f")), "/w/sub/real/f: write\n"));
  EXPECT_TRUE(has(to_json_text(*explain_path(*effective, place(), "link/f", through_links)),
                  R"({"path":"/w/sub/link/f","target":"/w/sub/real/f","access":"none")"));
}

TEST(Explain, ProtectedNamesOfTwoPartsAndInAnySpelling) {
  const auto effective = merged({});
  const auto note = [&](const std::string& path) { return explain_path(*effective, place(), path)->note; };
  for (const std::string name : {".hg/hgrc", ".hg/hgrc-not-shared", ".hg/sharedpath", ".github/copilot-instructions.md",
                                 ".sl/config", ".config/lefthook.yml", ".HG/Hgrc", ".VSCode", ".h\u200Cg/hgrc"})
    EXPECT_TRUE(has(note("/w/" + name), "is a protected name: inside a writable root it stays read-only")) << name;
  EXPECT_TRUE(has(note("/w/.hg/hgrc/x"), "`.hg/hgrc` is a protected name"));
  for (const std::string name : {".git/config", ".Git", ".gitmodules"})
    EXPECT_TRUE(has(note("/w/" + name), "nothing is written there that git would run")) << name;
  for (const std::string name : {".hg", ".hg/x", ".github/workflows/x.yml", "x.hg/hgrc", ".hg/x/hgrc", "a.git"})
    EXPECT_EQ(note("/w/" + name), "") << name;
}

TEST(Explain, WhatAnAttackerWroteComesOutEscaped) {
  const auto effective = merged({layer("user", "blocked_paths = [\"/a\\u001b[31m\"]\n")});
  EXPECT_FALSE(has(explain_text(*effective), "\x1b"));
  EXPECT_FALSE(has(to_toml_text(*effective), "\x1b"));
  EXPECT_FALSE(has(to_json_text(*effective), "\x1b"));
}

TEST(Explain, APasswordOfTheUpstreamProxyIsNotShown) {
  const auto effective = merged({layer("user", "network.upstream_proxy = \"http://me:p%40ss:w@proxy.example:3128\"\n")});
  ASSERT_TRUE(effective);
  EXPECT_EQ(effective->policy.network.upstream_proxy, "http://me:p%40ss:w@proxy.example:3128");
  for (const std::string& text :
       {to_toml_text(*effective), to_json_text(*effective), explain_text(*effective), explain_json(*effective)}) {
    EXPECT_TRUE(has(text, "http://me:***@proxy.example:3128")) << text;
    EXPECT_FALSE(has(text, "ss:w")) << text;
  }
  const auto bare = merged({layer("user", "network.upstream_proxy = \"http://proxy.example:3128\"\n")});
  EXPECT_TRUE(has(to_toml_text(*bare), "http://proxy.example:3128"));
}

TEST(Schema, NearestNames) {
  EXPECT_EQ(nearest_key("limits.memmory"), "limits.memory");
  EXPECT_EQ(nearest_key("memory"), "limits.memory");
  EXPECT_EQ(nearest_key("writableRoots"), "filesystem.writable_roots");
  EXPECT_EQ(nearest_key("netwrok_mode"), "network_mode");
  EXPECT_EQ(nearest_key("filesystem.writeable_roots"), "filesystem.writable_roots");
  EXPECT_EQ(nearest_key("zzzzqqqq"), "");
  EXPECT_EQ(nearest_key(std::string(100000, 'a')), "");
}

TEST(Schema, NamesAndFlagsAreUniqueAndDocumented) {
  for (const Key& key : keys()) {
    EXPECT_EQ(std::ranges::count(keys(), key.name, &Key::name), 1) << key.name;
    EXPECT_EQ(std::ranges::count(keys(), key.flag, &Key::flag) == 1, !key.flag.empty()) << key.flag;
    EXPECT_TRUE(key.doc.ends_with('.')) << key.name;
    EXPECT_FALSE(key.risk.empty()) << key.name;
    EXPECT_EQ(find_alias(key.name), nullptr) << key.name;
  }
  for (const Alias& alias : aliases()) {
    const bool sets = alias.how != Alias::How::kRefused;
    EXPECT_TRUE(find_key(alias.key) != nullptr || !sets || alias.how == Alias::How::kMustBeTrue) << alias.name;
  }
}

}  // namespace
}  // namespace belljar::policy
