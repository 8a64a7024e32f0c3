#include "policy/merge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "policy/schema.h"
#include "support_policy.h"

namespace belljar::policy {
namespace {

TEST(Merge, HigherLayerWinsAndOriginTellsTheLine) {
  const auto effective =
      merged({layer("system", "[limits]\npids = 10\nmemory = \"1GiB\"\n"), layer("user", "\n[limits]\npids = 20\n")});
  ASSERT_TRUE(effective) << effective.error().line();
  EXPECT_EQ(effective->policy.limits.pids, 20U);
  EXPECT_EQ(effective->policy.limits.memory, 1_GiB);
  EXPECT_EQ(origin_of(*effective, "limits.pids"), "user user.toml:3");
  EXPECT_EQ(origin_of(*effective, "limits.memory"), "system system.toml:3");
  EXPECT_EQ(origin_of(*effective, "limits.cpus"), "built-in");
}

TEST(Merge, EveryReplaceableKeyIsStored) {
  // Nothing is parsed and ignored: each key that takes one value changes the policy.
  for (const Key& key : keys()) {
    if (key.join != Join::kReplace || key.name == "mode" || key.name == "profile") continue;
    std::string_view text = "7";
    if (key.type == Type::kBool) text = key.fallback == "true" ? "false" : "true";
    if (key.type == Type::kPath) text = "/x";
    std::string last(key.values.substr(key.values.rfind('|') + 1)), first(key.values.substr(0, key.values.find('|')));
    if (key.type == Type::kEnum) text = first == key.fallback ? last : first;
    if (key.type == Type::kText) text = "x";
    if (key.name == "fallback") text = "landlock";
    Layer one{"user", false, {{&key, *value_from_text(key, text), {"user", "u.toml", 1}, {}}}};
    const auto with = merged({one}), without = merged({});
    ASSERT_TRUE(with) << key.name << with.error().line();
    EXPECT_FALSE(with->policy == without->policy) << key.name;
    EXPECT_EQ(origin_of(*with, std::string(key.name)), "user u.toml:1") << key.name;
  }
}

TEST(Merge, AFileOfTheWorkspaceSendsNothingElsewhere) {
  const auto user = layer("user", "fallback = [\"landlock\", \"e2b\"]\n");
  const auto project = [](const std::string& text) { return layer("project", text); };
  EXPECT_EQ(merged({user})->policy.fallback, (std::vector<std::string>{"landlock", "e2b"}));
  const auto with = merged({user, project("require = [\"network\"]\n")});
  ASSERT_TRUE(with) << with.error().line();
  EXPECT_EQ(with->policy.fallback, std::vector<std::string>{"landlock"});
  ASSERT_EQ(with->warnings.size(), 1U);
  EXPECT_NE(with->warnings[0].find("no machine elsewhere"), std::string::npos);
  EXPECT_FALSE(merged({user, project("isolation = \"vm\"\n")})) << "the way to it";
  // Who is elsewhere by the user's own word may fall back to another there.
  const auto away = layer("user", "backend = \"e2b\"\nfallback = [\"aliyun\"]\n");
  EXPECT_EQ(merged({away, project("require = [\"network\"]\n")})->policy.fallback, std::vector<std::string>{"aliyun"});
  // Repeating what holds anyway is no choice.
  const auto same = merged({project("backend = \"native\"\n")});
  ASSERT_TRUE(same) << same.error().line();
  EXPECT_EQ(same->origins.count("backend"), 0U);
}

TEST(Merge, NoTimeIsZero) {
  for (const char* key : {"timeout", "max_timeout", "idle_timeout"}) {
    const auto wrong = merged({layer("user", std::string("[limits]\n") + key + " = \"0s\"\n")});
    ASSERT_FALSE(wrong) << key;
    EXPECT_EQ(wrong.error().code(), Code::kInvalidArgument);
    EXPECT_EQ(wrong.error().what(), std::string("user user.toml:2: `limits.") + key + "` is 0s");
    EXPECT_TRUE(merged({layer("user", std::string("[limits]\n") + key + " = \"1ms\"\n")})) << key;
  }
  EXPECT_TRUE(merged({layer("user", "[limits]\nkill_grace = \"0s\"\n")})) << "killed at once";
}

TEST(Merge, AnOrderOfBackendsIsReplacedAsAWhole) {
  const auto effective =
      merged({layer("system", "fallback = [\"container\", \"landlock\"]\n"), layer("user", "fallback = [\"e2b\"]\n")});
  EXPECT_EQ(effective->policy.fallback, std::vector<std::string>{"e2b"});
  EXPECT_TRUE(merged({layer("system", "fallback = [\"e2b\"]\n"), layer("user", "fallback = []\n")})->policy.fallback.empty());
  const auto wrong = merged({layer("user", "\nfallback = [\"local\"]\n")});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().what(), "user user.toml:2: cannot fall back to `local`");
}

TEST(Merge, ListsGrowAndAnEmptyListClears) {
  const auto grown = merged({layer("system", "require = [\"a\"]\n"), layer("user", "require = [\"b\", \"a\"]\n")});
  EXPECT_EQ(grown->policy.require, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(origin_of(*grown, "require[a]"), "system system.toml:1");
  EXPECT_EQ(origin_of(*grown, "require[b]"), "user user.toml:1");
  const auto cleared = merged({layer("system", "require = [\"a\"]\n"), layer("user", "require = []\n")});
  EXPECT_TRUE(cleared->policy.require.empty());
  EXPECT_FALSE(merged({})->policy.environment.exclude.empty());
  EXPECT_TRUE(merged({layer("user", "[environment]\nexclude = []\n")})->policy.environment.exclude.empty());
  EXPECT_TRUE(merged({layer("user", "[filesystem]\ncache_dirs = []\n")})->policy.filesystem.cache_dirs.empty());
}

TEST(Merge, PathsResolveAgainstHomeWorkspaceAndCwd) {
  const auto effective = merged({layer("user", "[filesystem]\nwritable_roots = [\"~/a/../b/\", \"out//x/.\", \"/abs/./y\"]\n"),
                                 layer("flag", "[filesystem]\nwritable_roots = [\"here\"]\n")});
  EXPECT_EQ(access_of(effective, "/home/u/b/f"), "write");
  EXPECT_EQ(access_of(effective, "/w/out/x"), "write");
  EXPECT_EQ(access_of(effective, "/abs/y"), "write");
  EXPECT_EQ(access_of(effective, "/home/u/a"), "read");
  const FsEntry* rule = find_rule(effective->complete, "/w/sub/here/f");
  ASSERT_NE(rule, nullptr);
  EXPECT_EQ(rule->path, "/w/sub/here");
}

TEST(Merge, AStarInAListOfPathsIsAPatternAndInAnEntryAName) {
  const auto listed = merged({layer("user", "[filesystem]\nblocked_paths = [\"**/.env\"]\n")});
  EXPECT_TRUE(listed->policy.filesystem.entries.back().glob);
  const auto named = merged({layer("user", "[[filesystem.entries]]\npath = \"/a*b\"\naccess = \"none\"\n")});
  EXPECT_FALSE(named->policy.filesystem.entries.back().glob);
}

TEST(Merge, TildeWithoutHomeIsAnError) {
  const auto effective = merged({layer("user", "[filesystem]\nwritable_roots = [\"~/a\"]\n")}, {.workspace = "/w"});
  ASSERT_FALSE(effective);
  EXPECT_EQ(effective.error().what(), "user user.toml:2: cannot resolve path `~/a`");
}

TEST(Merge, ModeSaysWhetherTheWorkspaceIsWritable) {
  EXPECT_EQ(access_of(merged({layer("user", "mode = \"workspace-write\"\n")}), "/w/f"), "write");
  EXPECT_EQ(access_of(merged({layer("user", "mode = \"read-only\"\n")}), "/w/f"), "read");
  EXPECT_EQ(access_of(merged({}), "/etc/passwd"), "read");
  EXPECT_EQ(access_of(merged({}), "/wx"), "read");
}

TEST(Merge, ReadOnlyDropsWriteRulesOfLowerLayersOnly) {
  const Layer low = layer(
      "user",
      "[filesystem]\nwritable_roots = [\"/data\"]\nvolumes = [{ source = \"/v\", readonly = false }]\ntemp_dir = \"/scratch\"\n");
  EXPECT_EQ(access_of(merged({low}), "/data"), "write");
  const auto read_only = merged({low, layer("flag", "mode = \"read-only\"\nfilesystem.writable_roots = [\"/out\"]\n")});
  EXPECT_EQ(access_of(read_only, "/data"), "read");
  EXPECT_EQ(access_of(read_only, "/scratch"), "read");
  EXPECT_EQ(access_of(read_only, "/out"), "write");
  EXPECT_TRUE(read_only->policy.filesystem.volumes[0].readonly);
}

TEST(Merge, SamePathInAHigherLayerReplacesAndInOneLayerTheStricterStands) {
  EXPECT_EQ(access_of(merged({layer("system", "blocked_paths = [\"/a\"]\n"), layer("user", "readonly_paths = [\"/a\"]\n")}), "/a"),
            "read");
  EXPECT_EQ(access_of(merged({layer("system", "writable_roots = [\"/a\"]\n"), layer("user", "readonly_paths = [\"/a\"]\n")}), "/a"),
            "read");
  EXPECT_EQ(access_of(merged({layer("user", "writable_roots = [\"/a\"]\nreadonly_paths = [\"/a\"]\n")}), "/a"), "write");
  EXPECT_EQ(access_of(merged({layer("user", "blocked_paths = [\"/a\"]\nwritable_roots = [\"/a/\"]\n")}), "/a"), "none");
  EXPECT_EQ(access_of(merged({layer("user", "readonly_paths = [\".\"]\n")}), "/w/f"), "read");
}

// What a file in the workspace says is judged again where the tree is known; what it only repeats is its owner's.
TEST(Merge, AnEntryOfTheProjectIsMarkedUnlessSomebodyElseSaidIt) {
  const auto kind = [](const std::string& users) {
    const auto effective = merged({layer("user", users), layer("project", "[filesystem]\nreadonly_paths = [\"/tmp/f\"]\n")});
    return effective ? effective->policy.filesystem.entries.front().kind : RuleKind::kDefaultSecret;
  };
  EXPECT_EQ(kind(""), RuleKind::kNarrowing);
  EXPECT_EQ(kind("[filesystem]\nreadonly_paths = [\"/tmp/f\"]\n"), RuleKind::kGiven);
}

TEST(Merge, WriteInsideHiddenAndHiddenInsideWriteGoByTheMostSpecific) {
  const auto effective = merged({layer("user", "blocked_paths = [\"/a\", \"/a/b/c\"]\nwritable_roots = [\"/a/b\"]\n")});
  EXPECT_EQ(access_of(effective, "/a/x"), "none");
  EXPECT_EQ(access_of(effective, "/a/b/x"), "write");
  EXPECT_EQ(access_of(effective, "/a/b/c/x"), "none");
}

TEST(Merge, SecretsOfTheAccountsHomeAreHiddenWhateverHomeSays) {
  MergeContext context = place();
  context.account_home = "/home/account";
  for (const char* home : {"", "/nowhere"}) {
    context.home = home;
    const auto effective = merged({}, context);
    EXPECT_EQ(access_of(effective, "/home/account/.ssh/id"), "none") << home;
    EXPECT_EQ(access_of(effective, "/home/account/notes"), "read") << home;
    // For the backend, which knows $HOME alone.
    ASSERT_TRUE(effective);
    EXPECT_EQ(std::ranges::count(effective->policy.filesystem.entries, "/home/account/.ssh", &FsEntry::path), 1) << home;
  }
  EXPECT_EQ(access_of(merged({layer("policy", "readonly_paths = ['/home/account/.ssh']")}, context), "/home/account/.ssh/id"),
            "read");
  EXPECT_EQ(access_of(merged({layer("policy", "[filesystem]\nsecrets = 'none'")}, context), "/home/account/.ssh/id"), "read");
  context.home = context.account_home;  // the list for $HOME is enough
  EXPECT_TRUE(merged({}, context)->policy.filesystem.entries.empty());
}

TEST(Merge, SecretsAreHiddenUnlessNamedOrDropped) {
  EXPECT_EQ(access_of(merged({}), "/home/u/.ssh/id_ed25519"), "none");
  EXPECT_EQ(access_of(merged({}), "/etc/shadow"), "none");
  EXPECT_EQ(access_of(merged({layer("flag", "readonly_paths = [\"~/.ssh\"]\n")}), "/home/u/.ssh/id"), "read");
  EXPECT_EQ(access_of(merged({layer("user", "filesystem.secrets = \"none\"\n")}), "/home/u/.ssh/id"), "read");
  // A wider rule does not open them.
  EXPECT_EQ(access_of(merged({layer("user", "writable_roots = [\"~\"]\n")}), "/home/u/.ssh/id"), "none");
}

TEST(Merge, TemporaryDirectories) {
  MergeContext context = place();
  context.tmpdir = "/scratch/u";
  const auto tmpdir = [&](const char* toml) { return merged({layer("user", toml)}, context)->policy.environment.set.at("TMPDIR"); };
  const auto access = [&](const char* toml, const char* path) { return access_of(merged({layer("user", toml)}, context), path); };
  // Private: the host's directories are not opened.
  EXPECT_EQ(access("", "/tmp/x"), "read");
  EXPECT_EQ(access("", "/scratch/u"), "read");
  EXPECT_EQ(tmpdir(""), "/tmp");
  EXPECT_EQ(access("filesystem.tmp = \"shared\"\n", "/tmp/x"), "write");
  EXPECT_EQ(access("filesystem.tmp = \"shared\"\n", "/scratch/u/x"), "write");
  EXPECT_EQ(tmpdir("filesystem.tmp = \"shared\"\n"), "/scratch/u");
  EXPECT_EQ(access("filesystem.tmp = \"shared\"\nexclude_slash_tmp = true\n", "/tmp/x"), "read");
  EXPECT_EQ(access("filesystem.tmp = \"shared\"\nexclude_tmpdir_env_var = true\n", "/scratch/u/x"), "read");
  EXPECT_EQ(tmpdir("filesystem.tmp = \"shared\"\nexclude_tmpdir_env_var = true\n"), "/tmp");
  EXPECT_EQ(access("temp_dir = \"/t\"\n", "/t/x"), "write");
  EXPECT_EQ(tmpdir("temp_dir = \"/t\"\n"), "/t");
  EXPECT_EQ(access("mode = \"read-only\"\nfilesystem.tmp = \"shared\"\n", "/tmp/x"), "read");
}

TEST(Merge, WhatIsToBeCleanedIsADirectoryOfTheSandboxesOwn) {
  EXPECT_TRUE(merged({layer("user", "temp_dir = \"/t\"\nauto_clean_temp = true\n")})->policy.filesystem.clean_temp_dir);
  EXPECT_TRUE(merged({layer("user", "temp_dir = \"/t\"\nauto_clean_temp = false\n")})) << "files stay there";
  EXPECT_TRUE(merged({layer("user", "auto_clean_temp = true\n")})) << "the private ones always do";
  const auto refused = merged({layer("user", "auto_clean_temp = true\nfilesystem.tmp = \"shared\"\n")});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what(), "user user.toml:1: `filesystem.clean_temp_dir` (auto_clean_temp) cannot hold");
}

TEST(Merge, AnImageMeansAContainerUnlessSomebodyNamesABackend) {
  const auto backend_of = [](const char* text) { return merged({layer("user", text)})->policy.backend; };
  EXPECT_EQ(backend_of("image = \"golang:1.21\"\n"), "container");
  EXPECT_EQ(backend_of("image = \"golang:1.21\"\nfallback = [\"container\"]\n"), "native") << "where native cannot start";
  EXPECT_EQ(backend_of("image = \"golang:1.21\"\nbackend = \"landlock\"\n"), "landlock") << "which the start refuses";
  EXPECT_EQ(backend_of("use_docker = true\n"), "container");
  EXPECT_EQ(backend_of("use_docker = false\n"), "native");
}

TEST(Merge, ATmpdirAboveWorkspaceOrHomeIsNotTaken) {
  for (const char* hostile : {"/", "/w", "/home", "/home/u", "relative"}) {
    MergeContext context = place();
    context.tmpdir = hostile;
    const auto effective = merged({layer("user", "filesystem.tmp = \"shared\"\n")}, context);
    EXPECT_EQ(access_of(effective, "/home/u/f"), "read") << hostile;
    EXPECT_EQ(access_of(effective, "/etc/f"), "read") << hostile;
  }
}

TEST(Merge, TheUsersPolicyStaysReadOnlyInsideAWritableConfigDirectory) {
  MergeContext context = place();
  context.config_dir = "/home/u/.config/belljar";
  EXPECT_EQ(
      access_of(merged({layer("user", "writable_roots = [\"~/.config\"]\n")}, context), "/home/u/.config/belljar/policy.toml"),
      "read");
  EXPECT_EQ(access_of(merged({layer("user", "writable_roots = [\"~/.config\"]\n")}, context), "/home/u/.config/other"), "write");
  EXPECT_EQ(access_of(merged({layer("user", "blocked_paths = [\"~/.config\"]\n")}, context), "/home/u/.config/belljar/policy.toml"),
            "none");
}

TEST(Merge, TheRepositoryOfALinkedWorkTreeIsWrittenToUnlessARuleSpeaksOfIt) {
  MergeContext context = place();
  context.repository = "/srv/project/.git";
  const auto access = [&](const char* toml) {
    return access_of(merged({layer("user", toml)}, context), "/srv/project/.git/refs/heads/x");
  };
  EXPECT_EQ(access(""), "write");
  EXPECT_EQ(access_of(merged({}, context), "/srv/project/x"), "read");
  // For the backend, which knows the workspace alone.
  EXPECT_EQ(std::ranges::count(merged({}, context)->policy.filesystem.entries, "/srv/project/.git", &FsEntry::path), 1);
  EXPECT_EQ(access("mode = 'read-only'\n"), "read");
  EXPECT_EQ(access("[filesystem]\nprotect = 'all'\n"), "read");
  for (const char* path : {"/srv/project/.git", "/srv/project", "/srv"})
    EXPECT_EQ(access((std::string("readonly_paths = ['") + path + "']\n").c_str()), "read") << path;
  EXPECT_EQ(access("blocked_paths = ['/srv/project']\n"), "none");
  EXPECT_EQ(access("writable_roots = ['/srv/project']\n"), "write");
}

TEST(Merge, WhatBelljarKeepsIsHiddenUnlessARuleNamesIt) {
  MergeContext context = place();
  context.state_dir = "/var/lib//belljar/";
  const auto hidden = merged({}, context);
  EXPECT_EQ(access_of(hidden, "/var/lib/belljar/txn"), "none");
  EXPECT_EQ(access_of(hidden, "/var/lib/other"), "read");
  ASSERT_EQ(hidden->policy.filesystem.entries.size(), 1U);
  EXPECT_EQ(hidden->policy.filesystem.entries[0].kind, RuleKind::kDefaultSecret);
  const auto shown = merged({layer("user", "readonly_paths = [\"/var/lib/belljar\"]\n")}, context);
  EXPECT_EQ(access_of(shown, "/var/lib/belljar/txn"), "read");
  context.state_dir = "/home/u/.local/state/belljar";  // one of the default secrets: said once
  EXPECT_EQ(std::ranges::count(merged({}, context)->complete.entries, context.state_dir, &FsEntry::path), 1);
}

TEST(Merge, APatternInAShortListIsChecked) {
  const auto bad = merged({layer("user", "blocked_paths = [\"a[b*\"]\n")});
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().line().find("user.toml:1"), std::string::npos) << bad.error().line();
  EXPECT_NE(bad.error().reason().find("not closed"), std::string::npos) << bad.error().reason();
  EXPECT_TRUE(merged({layer("user", "blocked_paths = [\"a[bc]*\", \"a[b\"]\n")}));  // the second is a plain name
}

TEST(Merge, ThePolicyHoldsTheLayersOwnRulesAndCompleteSpellsOutTheRest) {
  EXPECT_TRUE(merged({})->policy.filesystem.entries.empty());
  const auto effective = merged({layer("user", "writable_roots = [\"/a\"]\n")});
  ASSERT_EQ(effective->policy.filesystem.entries.size(), 1U);
  EXPECT_EQ(effective->policy.filesystem.entries[0].path, "/a");
  EXPECT_EQ(effective->complete.entries.back().path, "/a");
  EXPECT_EQ(effective->complete.entries[0].path, "/");
  EXPECT_EQ(effective->complete.entries[1].path, "/w");
}

TEST(Merge, NoCacheDirectoriesMeansNoCacheLayer) {
  EXPECT_EQ(merged({layer("user", "filesystem.cache_dirs = []\n")})->policy.filesystem.caches, Caches::kOff);
  EXPECT_EQ(merged({})->policy.filesystem.caches, Caches::kPrivate);
}

TEST(Merge, DangerDropsLowerRulesAndContradictsItsOwn) {
  const Layer rules = layer("system", "blocked_paths = [\"/a\"]\nnetwork_mode = \"none\"\n[limits]\npids = 5\n");
  const auto dropped = merged({rules, layer("flag", "mode = \"danger-full-access\"\n")});
  EXPECT_EQ(access_of(dropped, "/a"), "write");
  EXPECT_EQ(access_of(dropped, "/home/u/.ssh"), "write");
  EXPECT_EQ(dropped->policy.network.mode, NetMode::kHost);
  EXPECT_EQ(dropped->policy.limits.pids, 5U);
  EXPECT_EQ(dropped->warnings.size(), 2U) << "that rules are dropped, and the mode itself";
  const auto hide = merged({layer("flag", "mode = \"danger-full-access\"\nblocked_paths = [\"/a\"]\n")});
  ASSERT_FALSE(hide);
  EXPECT_EQ(hide.error().what(), "flag flag.toml:2: `filesystem.blocked_paths` cannot hold in mode danger-full-access");
  const auto net = merged({layer("user", "mode = \"external-sandbox\"\n"), layer("flag", "network_mode = \"none\"\n")});
  ASSERT_FALSE(net);
  EXPECT_EQ(net.error().what(), "flag flag.toml:1: network.mode none cannot hold in mode external-sandbox");
  const Layer siblings = layer("user", "filesystem.siblings = \"hidden\"\n");
  EXPECT_EQ(merged({siblings, layer("flag", "mode = \"danger-full-access\"\n")})->policy.filesystem.siblings, std::nullopt);
  const auto beside = merged({layer("flag", "mode = \"danger-full-access\"\nfilesystem.siblings = \"hidden\"\n")});
  ASSERT_FALSE(beside);
  EXPECT_EQ(beside.error().what(), "flag flag.toml:2: filesystem.siblings hidden cannot hold in mode danger-full-access");
  EXPECT_EQ(merged({siblings})->policy.filesystem.siblings, Siblings::kHidden) << "the twin";
}

TEST(Merge, DomainsOnTheHostNetworkAreAContradiction) {
  EXPECT_TRUE(merged({layer("user", "network.mode = \"proxy\"\nallowed_domains = [\"a.example\"]\n")}));
  const auto host = merged({layer("user", "network.mode = \"host\"\ndenied_domains = [\"a.example\"]\n")});
  ASSERT_FALSE(host);
  EXPECT_EQ(host.error().what(), "user user.toml:2: `network.denied_domains` cannot hold with network.mode host");
}

// The warning says of which rule it is, and what holds: the same as find_rule() has it.
TEST(Merge, TwoRulesOfOneLayerForOnePathAreAWarningThatSaysWhichHolds) {
  constexpr struct {
    const char* first;
    const char* second;
    const char* says;
  } kRows[] = {
      {"readonly_paths", "blocked_paths", "read (user user.toml:2) and none (user user.toml:3); it is none"},
      {"blocked_paths", "writable_roots", "none (user user.toml:2) and write (user user.toml:3); it is none"},
      {"writable_roots", "readonly_paths", "write (user user.toml:2) and read (user user.toml:3); it is write"},
      {"readonly_paths", "writable_roots", "read (user user.toml:2) and write (user user.toml:3); it is write"},
  };
  for (const auto& row : kRows) {
    const auto effective =
        merged({layer("user", std::string("[filesystem]\n") + row.first + " = [\"/a\"]\n" + row.second + " = [\"/a/\"]\n")});
    ASSERT_TRUE(effective) << effective.error().line();
    ASSERT_EQ(effective->warnings.size(), 1U) << row.says;
    EXPECT_NE(effective->warnings[0].find(std::string("user user.toml:3: `/a` has two rules: ") + row.says), std::string::npos)
        << effective->warnings[0];
    const std::string held(to_string(find_rule(effective->complete, "/a")->access));
    EXPECT_TRUE(std::string_view(row.says).ends_with("it is " + held)) << row.says << ", but holds " << held;
  }
  EXPECT_TRUE(merged({layer("user", "writable_roots = [\"/a\", \"/a\"]\n")})->warnings.empty()) << "said twice";
  EXPECT_TRUE(
      merged({layer("user", "writable_roots = [\"/a\"]\n"), layer("flag", "readonly_paths = [\"/a\"]\n")})->warnings.empty())
      << "of two layers the later one holds";
}

TEST(Merge, TheHostsNetworkAndNoSandboxAreToldOnce) {
  EXPECT_EQ(
      merged({layer("flag", "network.mode = \"host\"\n")})->warnings,
      std::vector<std::string>{"network.mode host: nothing judges whom the commands reach, services of this machine included"});
  EXPECT_EQ(merged({layer("flag", "mode = \"danger-full-access\"\n")})->warnings,
            std::vector<std::string>{"mode danger-full-access: no sandbox holds the commands, they have all rights of this user"});
  EXPECT_TRUE(merged({layer("flag", "network.mode = \"proxy\"\n")})->warnings.empty()) << "the twin";
}

// Who starts something by them says whether it holds them (runtime::check_supported).
TEST(Merge, CommandRulesOfEachLayerAddUp) {
  const auto effective =
      merged({layer("user", "[commands]\nallow = [\"ls\"]\ndeny = [\"rm\"]\n"), layer("project", "[commands]\ndeny = [\"su\"]\n")});
  ASSERT_TRUE(effective) << effective.error().line();
  EXPECT_EQ(effective->policy.commands, (Commands{.allow = {"ls"}, .deny = {"rm", "su"}}));
  EXPECT_EQ(origin_of(*effective, "commands.deny[rm]"), "user user.toml:3");
  EXPECT_EQ(origin_of(*effective, "commands.deny[su]"), "project project.toml:2");
}

TEST(Merge, MaxTimeoutCapsWhateverIsAsked) {
  EXPECT_EQ(merged({layer("user", "[limits]\nmax_timeout = \"5m\"\ntimeout = \"1h\"\n")})->policy.limits.timeout,
            std::chrono::minutes(5));
  EXPECT_EQ(merged({layer("user", "[limits]\nmax_timeout = \"5m\"\ntimeout = \"1m\"\n")})->policy.limits.timeout,
            std::chrono::minutes(1));
  EXPECT_EQ(merged({layer("user", "[limits]\nmax_timeout = \"5m\"\n")})->policy.limits.timeout, std::chrono::minutes(5));
  EXPECT_EQ(merged({})->policy.limits.timeout, std::nullopt);
}

TEST(Merge, AWorkspaceWithPatternCharactersIsNoPattern) {
  const auto effective =
      merged({layer("user", "[[filesystem.entries]]\nglob = \"**/.env\"\naccess = \"none\"\n")}, {.workspace = "/w[x]"});
  EXPECT_EQ(access_of(effective, "/w[x]/a/.env"), "none");
  EXPECT_EQ(access_of(effective, "/wx/a/.env"), "read");
}

// Programs that are caught on their way give no credential.
TEST(Merge, ACredentialOfTheProxyEndsTransparency) {
  const auto alone = merged({layer("user", "[network]\nmode = \"proxy\"\nproxy_auth = true")});
  ASSERT_TRUE(alone);
  EXPECT_FALSE(alone->policy.network.transparent);
  EXPECT_EQ(origin_of(*alone, "network.transparent"), origin_of(*alone, "network.proxy_auth"));
  const auto both =
      merged({layer("user", "[network]\nmode = \"proxy\"\ntransparent = true"), layer("policy", "[network]\nproxy_auth = true")});
  ASSERT_FALSE(both);
  EXPECT_NE(both.error().line().find("`network.proxy_auth` guards nothing"), std::string::npos) << both.error().line();
  const auto agreed = merged({layer("user", "[network]\nmode = \"proxy\"\ntransparent = false\nproxy_auth = true")});
  ASSERT_TRUE(agreed) << "the twin";
  EXPECT_TRUE(merged({layer("user", "[network]\nmode = \"proxy\"")})->policy.network.transparent);
}

TEST(Merge, AModeWithoutAProxyDropsTheHostsOfLowerLayers) {
  const Layer profile = layer("agent", "[network]\nmode = \"proxy\"\nallowed_domains = [\"a.example\"]\n");
  for (const std::string mode : {"none", "host"}) {
    const auto policy = merged({profile, layer("flag", "[network]\nmode = \"" + mode + "\"\n")});
    ASSERT_TRUE(policy) << policy.error().line();
    EXPECT_TRUE(policy->policy.network.allowed_domains.empty()) << mode;
  }
  const auto again = merged({profile, layer("flag", "[network]\nmode = \"proxy\"\n")});
  EXPECT_EQ(again->policy.network.allowed_domains, std::vector<std::string>{"a.example"});
  const auto own = merged({profile, layer("flag", "[network]\nmode = \"none\"\nallowed_domains = [\"b.example\"]\n")});
  EXPECT_EQ(own->policy.network.allowed_domains, std::vector<std::string>{"b.example"}) << "for the start to refuse";
}

}  // namespace
}  // namespace belljar::policy
