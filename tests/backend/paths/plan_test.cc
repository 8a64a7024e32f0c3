// From policy to view, on a host of literal paths.
#include "backend/paths/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/paths/fake_host.h"
#include "backend/paths/host.h"
#include "backend/paths/support_plan.h"
#include "backend/paths/view.h"
#include "belljar/policy.h"

namespace belljar::backend {
namespace {

TEST(PlanPaths, WorkspaceIsWritableInWorkspaceWriteOnly) {
  EXPECT_EQ(plan(usual_host(), {}).writable, std::vector<std::string>{"/home/u/ws"});
  EXPECT_TRUE(plan(usual_host(), {.mode = Mode::kReadOnly}).writable.empty());
}

// Of a hidden directory that holds the workspace only the way to it is seen.
// Directories that other sandboxes work in.
// Root's commands read what a user lets others read.
TEST(PlanPaths, AnEntryForTheWorkspaceCountsInReadOnly) {
  Policy policy = with({.path = "/home/u/ws", .access = Access::kWrite});
  policy.mode = Mode::kReadOnly;
  EXPECT_EQ(plan(usual_host(), policy).writable, std::vector<std::string>{"/home/u/ws"});
}

TEST(PlanPaths, AWriteEntryThroughALinkInTheWorkspaceIsRefused) {
  FakeHost host = usual_host();
  host.link("/home/u/ws/out", "/etc");
  EXPECT_NE(
      refusal(host, with({.path = "/home/u/ws/out", .access = Access::kWrite})).find("symbolic link inside a writable directory"),
      std::string::npos);
  EXPECT_EQ(refusal(host, with({.path = "/etc", .access = Access::kWrite})), "");
}

TEST(PlanPaths, AnAbsentWriteEntryIsRefusedByName) {
  EXPECT_NE(refusal(usual_host(), with({.path = "/srv/none", .access = Access::kWrite})).find("cannot make `/srv/none` writable"),
            std::string::npos);
}

// A home below a private /tmp is shown as the host has it: nothing of it is writable by itself.
TEST(PlanPaths, AnAbsentWriteEntryIsPrivateOnlyWhereNothingOfTheHostIsShown) {
  FakeHost host = usual_host();
  host.dir("/tmp/home");
  const Workplace place{.workspace = "/home/u/ws", .cwd = "/home/u/ws", .home = "/tmp/home"};
  EXPECT_NE(refusal(host, with({.path = "/tmp/home/new", .access = Access::kWrite}), place).find("it does not exist"),
            std::string::npos);
  EXPECT_EQ(refusal(host, with({.path = "/tmp/new", .access = Access::kWrite}), place), "");
  Policy excluded = with({.path = "/tmp/new", .access = Access::kWrite});
  excluded.filesystem.exclude_slash_tmp = true;
  EXPECT_NE(refusal(host, excluded, place).find("it does not exist"), std::string::npos);
}

TEST(PlanPaths, WhatAShippedProfileListsMayBeAbsent) {
  FakeHost host = usual_host();
  host.dir("/home/u/.npm");
  Policy policy = with({.path = "/home/u/.m2", .access = Access::kWrite, .origin = {"build", "build.toml", 8}});
  policy.filesystem.entries.push_back({.path = "/home/u/.npm", .access = Access::kWrite, .origin = {"build", "build.toml", 9}});
  const PathPlan paths = plan(host, policy);
  EXPECT_EQ(paths.writable, (std::vector<std::string>{"/home/u/ws", "/home/u/.npm"}));
  EXPECT_TRUE(has_gap(paths, "filesystem.absent_writable"));
  for (const Origin& own : {Origin{"policy", "build.toml", 8}, Origin{"policy", "policy.toml", 8}}) {
    policy.filesystem.entries[0].origin = own;
    EXPECT_NE(refusal(host, policy).find("cannot make `/home/u/.m2` writable"), std::string::npos) << own.file;
  }
}

// Once an entry that was named like one of the list made the list count as given, and 150 secrets stayed open.
// Of the account's home where $HOME names another: held before they are there, as those of $HOME are.
// The mount that makes a directory writable lies over a mask of the home.
// A volume shows its source where no rule for a path of the host is looked for.
TEST(PlanPaths, AVolumeThatLeadsAroundARuleIsRefused) {
  FakeHost host = usual_host();
  host.dir("/mnt").dir("/home/u/.ssh").dir("/home/u/src").dir("/home/u/src/keys").dir("/home/u/src/lib").dir("/srv/data");
  const auto refused = [&](const std::string& source, bool readonly, FsEntry entry) {
    Policy policy = with(std::move(entry));
    policy.filesystem.volumes.push_back({.source = source, .target = "/mnt", .readonly = readonly});
    return refusal(host, policy);
  };
  const FsEntry hidden{.path = "/home/u/src/keys", .access = Access::kNone};
  EXPECT_NE(refused("/home/u", true, hidden).find("keeps `/home/u/.ssh` hidden"), std::string::npos);
  EXPECT_NE(refused("/home/u/.ssh", true, hidden).find("keeps `/home/u/.ssh` hidden"), std::string::npos);
  EXPECT_NE(refused("/home/u/src", true, hidden).find("keeps `/home/u/src/keys` hidden"), std::string::npos);
  EXPECT_NE(refused("/home/u/src/keys/sub", true, hidden), "");
  EXPECT_EQ(refused("/home/u/src/lib", true, hidden), "");
  EXPECT_EQ(refused("/srv/data", false, hidden), "");

  const FsEntry kept{.path = "/home/u/src/lib", .access = Access::kRead};
  EXPECT_NE(refused("/home/u/src", false, kept).find("keeps `/home/u/src/lib` read-only"), std::string::npos);
  EXPECT_EQ(refused("/home/u/src", true, kept), "");

  const FsEntry anchored{.path = "/home/u/src/*.pem", .glob = true, .access = Access::kNone};
  EXPECT_NE(refused("/home/u/src", true, anchored), "");
  EXPECT_EQ(refused("/srv/data", true, anchored), "");
  const FsEntry anywhere{.path = "**/.env", .glob = true, .access = Access::kNone};
  EXPECT_EQ(refused("/home/u/src", true, anywhere), "");
}

// The list of a file in the workspace may only narrow: what its names lead to is known here alone.
TEST(PlanPaths, AnEntryOfTheWorkspacesFileShowsNothing) {
  FakeHost host = usual_host();
  host.file("/tmp/f").file("/home/u/ws/lib").link("/home/u/ws/evil", "/tmp/f");
  const auto refused = [&](const std::string& path, Policy policy = {}) {
    policy.filesystem.entries.push_back({.path = path, .access = Access::kRead, .kind = RuleKind::kNarrowing});
    return refusal(host, policy);
  };
  EXPECT_NE(refused("/tmp/f").find("a project file may not make `/tmp/f` readable"), std::string::npos);
  EXPECT_NE(refused("/home/u/ws/evil").find("a project file may not make `/tmp/f` readable"), std::string::npos);
  EXPECT_EQ(refused("/home/u/ws/lib"), "");
  EXPECT_EQ(refused("/tmp/f", with({.path = "/tmp/f", .access = Access::kRead})), "");
  EXPECT_EQ(refusal(host, with({.path = "/tmp/f", .access = Access::kRead})), "");
}

TEST(PlanPaths, WhereLittleIsReadableAnEntryOfTheWorkspacesFileShowsNoMore) {
  FakeHost host = usual_host();
  host.file("/srv/f").link("/home/u/ws/evil", "/srv/f");
  const auto refused = [&](Access access) {
    Policy policy = with({.path = "/", .access = Access::kNone});
    policy.filesystem.entries.push_back({.path = "/srv", .access = access});
    policy.filesystem.entries.push_back({.path = "/home/u/ws/evil", .access = Access::kRead, .kind = RuleKind::kNarrowing});
    return refusal(host, policy);
  };
  EXPECT_NE(refused(Access::kNone).find("nothing else makes it readable"), std::string::npos);
  EXPECT_EQ(refused(Access::kRead), "");
}

// Root lends what a bind shows to the command's id, whoever owns it: then the mode holds nothing.
TEST(PlanPaths, ADeviceThatIsNotThereIsNamed) {
  FakeHost host = usual_host();
  Policy policy;
  policy.filesystem.devices = {"/dev/dri"};
  EXPECT_NE(refusal(host, policy).find("cannot open the device `/dev/dri`"), std::string::npos);
  host.dir("/dev/dri");
  EXPECT_EQ(refusal(host, policy), "");
}

// It is shown writable and over everything else.
TEST(PlanPaths, OnlyADeviceIsOpenedAsOne) {
  FakeHost host = usual_host();
  host.node("/dev/fuse").node("/dev/dri/card0").node("/srv/loop").mounted("/dev/pts").dir("/home/u/.ssh").file("/etc/hostname");
  host.link("/dev/render", "/dev/dri/card0");
  const auto refused = [&](const std::string& device, std::vector<FsEntry> entries = {}) {
    Policy policy;
    policy.filesystem.devices = {device};
    policy.filesystem.entries = std::move(entries);
    return refusal(host, policy);
  };
  for (const std::string device : {"/home/u/.ssh", "/etc/hostname", "/dev", "/", "/dev/pts", "/dev/render", "/home/u/ws"})
    EXPECT_NE(refused(device).find("cannot open the device"), std::string::npos) << device;
  for (const std::string device : {"/dev/fuse", "/dev/dri", "/dev/dri/card0", "/srv/loop"})
    EXPECT_EQ(refused(device), "") << device;
  EXPECT_NE(refused("/dev/dri/card0", {{.path = "/dev/dri", .access = Access::kNone}}).find("`/dev/dri` is hidden"),
            std::string::npos);
  EXPECT_EQ(refused("/dev/fuse", {{.path = "/dev/dri", .access = Access::kNone}}), "");
}

// Of a hidden directory what is writable in it is shown, and nothing else; not by a rule that may only narrow, and not around a
// home.
// What hides a directory hides what is in it, whichever was named first.
// No layer, no private directory: what writes would need is not there, and what is scratch is only read.
TEST(PlanPaths, WithoutMountsNothingIsPrivateAndScratchIsReadOnly) {
  FakeHost host = usual_host();
  host.dir("/home/u/.cache").dir("/home/u/ws/out");
  Policy policy;
  policy.filesystem.scratch = {"/home/u/ws/out"};
  const auto paths = plan_paths(host, policy, kPlace, Mounts::kNone);
  ASSERT_TRUE(paths);
  EXPECT_EQ(paths->view.private_dirs.size(), paths->emptied.size());
  EXPECT_TRUE(paths->view.caches.empty());
  EXPECT_EQ(paths->readonly, std::vector<std::string>{"/home/u/ws/out"});
  EXPECT_EQ(paths->writable, std::vector<std::string>{"/home/u/ws"}) << "/var/tmp neither";
  const PathPlan own = plan(host, policy);
  EXPECT_GT(own.view.private_dirs.size(), own.emptied.size()) << "the twin";
  EXPECT_TRUE(own.readonly.empty());
}

// Whichever was hidden first: a mask of the folder would show what else is in it.
TEST(PlanPaths, ExistingGitDirectoryIsReadOnlyAndAbsentOneIsAGap) {
  FakeHost host = usual_host();
  EXPECT_TRUE(has_gap(plan(host, {}), "protect.absent"));
  host.dir("/home/u/ws/.git");
  EXPECT_TRUE(std::ranges::count(plan(host, protect_all()).readonly, "/home/u/ws/.git"));
  EXPECT_TRUE(plan(host, {}).readonly.empty());
  Workplace nested = kPlace;
  nested.listener = false;
  EXPECT_TRUE(std::ranges::count(plan(host, {}, nested).readonly, "/home/u/ws/.git"));
  Policy open;
  open.filesystem.protect = Protect::kNone;
  EXPECT_TRUE(plan(host, open).readonly.empty());
}

TEST(PlanPaths, AGitFileIsFollowedToItsRepositoryAndTheCommonOne) {
  FakeHost host = usual_host();
  host.file("/home/u/ws/.git", "gitdir: store/wt\n").dir("/home/u/ws/store/wt").file("/home/u/ws/store/wt/commondir", "../main\n");
  host.dir("/home/u/ws/store/wt/../main").dir("/home/u/ws/store/main");
  const PathPlan paths = plan(host, protect_all());
  EXPECT_TRUE(std::ranges::count(paths.readonly, "/home/u/ws/store/wt"));
  EXPECT_TRUE(std::ranges::count(paths.pinned, "/home/u/ws/store"));
  EXPECT_TRUE(has_gap(paths, "protect.files"));
}

TEST(PlanPaths, GlobsAreAGapByName) {
  EXPECT_TRUE(has_gap(plan(usual_host(), with({.path = "**/.env", .glob = true, .access = Access::kNone})), "filesystem.globs"));
}

TEST(PlanPaths, TmpIsPrivateUnlessShared) {
  const auto is_private = [](const PathPlan& paths) {
    return std::ranges::any_of(paths.view.private_dirs, [](const PrivateDir& dir) { return dir.target == "/tmp"; });
  };
  EXPECT_TRUE(is_private(plan(usual_host(), {})));
  Policy shared;
  shared.filesystem.tmp = Tmp::kShared;
  EXPECT_FALSE(is_private(plan(usual_host(), shared)));
}

TEST(PlanPaths, ATemporaryDirectoryThatIsToBeCleanedIsTheSandboxesOwn) {
  const auto is_private = [](const PathPlan& paths, const std::string& path) {
    return std::ranges::any_of(paths.view.private_dirs, [&](const PrivateDir& dir) { return dir.target == path && !dir.readonly; });
  };
  FakeHost host = usual_host();
  host.dir("/srv/t", 1000);
  Policy policy;
  policy.filesystem.temp_dir = "/srv/t";
  EXPECT_FALSE(is_private(plan(host, policy), "/srv/t"));
  EXPECT_EQ(plan(host, policy).writable, (std::vector<std::string>{"/srv/t", "/home/u/ws"}));
  policy.filesystem.clean_temp_dir = true;
  EXPECT_TRUE(is_private(plan(host, policy), "/srv/t"));
  EXPECT_EQ(plan(host, policy).writable, std::vector<std::string>{"/home/u/ws"}) << "nothing of the host's";
  for (const char* around : {"/home/u", "/home", "/home/u/ws", "/"}) {
    policy.filesystem.temp_dir = around;
    EXPECT_NE(refusal(host, policy).find("the workspace or the home lies in it"), std::string::npos) << around;
  }
  policy.filesystem.temp_dir = "/srv/none";
  EXPECT_NE(refusal(host, policy).find("it does not exist"), std::string::npos);
  for (const bool clean : {true, false}) {
    policy.filesystem.clean_temp_dir = clean;
    policy.filesystem.temp_dir = "/tmp/none";
    EXPECT_TRUE(is_private(plan(host, policy), "/tmp/none")) << "below a private one it is made";
  }
}

TEST(PlanPaths, APlaceForAVolumeIsMadeInsideAlone) {
  FakeHost host = usual_host();
  host.dir("/data", 1000).dir("/srv/a").link("/bin", "usr/bin").dir("/usr/bin");
  Policy policy;
  const auto at = [&](const std::string& target) {
    policy.filesystem.volumes = {{.source = "/data", .target = target}};
    return plan(host, policy).view;
  };
  EXPECT_FALSE(at("/srv/a").masks.contains("/srv")) << "it is there";
  EXPECT_EQ(at("/srv/b/c").masks.at("/srv").ghosts, std::vector<std::string>{"b/c"});
  EXPECT_EQ(at("/home/u/x/y").masks.at("/home/u").ghosts.front(), "x/y") << "in the mask that the home has";
  EXPECT_TRUE(at("/srv/b/c").whole_root);
  const View own = at("/workspace/data");
  EXPECT_FALSE(own.whole_root);
  for (const char* name : {"/etc", "/home", "/data"})
    EXPECT_TRUE(std::ranges::any_of(own.binds, [&](const Bind& bind) { return bind.target == name && bind.readonly; })) << name;
  EXPECT_TRUE(std::ranges::any_of(own.root_links,
                                  [](const auto& link) { return link == std::pair<std::string, std::string>("/bin", "usr/bin"); }));
  EXPECT_FALSE(std::ranges::any_of(own.binds, [](const Bind& bind) { return bind.target == "/tmp"; })) << "a private one is there";
}

// The key takes away: a file in the workspace may set it.
TEST(PlanPaths, AnExcludedTmpShowsNothingOfTheHostsUnlessShared) {
  Policy policy;
  policy.filesystem.exclude_slash_tmp = true;
  const auto shown = [&](const PathPlan& paths) {
    return std::ranges::count_if(paths.view.binds, [](const Bind& bind) { return bind.target == "/tmp"; });
  };
  const PathPlan excluded = plan(usual_host(), policy);
  EXPECT_EQ(shown(excluded), 0);
  EXPECT_TRUE(
      std::ranges::any_of(excluded.view.private_dirs, [](const PrivateDir& dir) { return dir.target == "/tmp" && dir.readonly; }));
  policy.filesystem.tmp = Tmp::kShared;
  const PathPlan shared = plan(usual_host(), policy);
  EXPECT_EQ(shown(shared), 1);
  EXPECT_FALSE(std::ranges::count(shared.writable, "/tmp"));
}

TEST(PlanPaths, ATransactionNeedsAWritableWorkspaceAndNoWayAround) {
  FakeHost host = usual_host();
  Policy policy;
  policy.filesystem.volumes.push_back({.source = "/srv/code", .target = "/mnt", .readonly = false});
  host.dir("/mnt").dir("/srv/code").dir("/srv/code/ws");
  Workplace place = in_transaction();
  place.workspace = place.cwd = "/srv/code/ws";
  EXPECT_NE(refusal(host, policy, place).find("shows the workspace a second time"), std::string::npos);
  EXPECT_EQ(refusal(host, policy), "");
  policy.filesystem.volumes[0].readonly = true;
  EXPECT_EQ(refusal(host, policy, place), "");
  EXPECT_NE(refusal(host, {.mode = Mode::kReadOnly}, in_transaction()).find("nothing to hold back"), std::string::npos);
}

TEST(PlanPaths, ALinkInAVolumeIsFollowedInTheVolume) {
  FakeHost host = usual_host();
  host.dir("/mnt").dir("/srv/code").file("/srv/code/docs/copilot-instructions.md").link("/srv/code/.github", "/srv/code/docs");
  Policy policy;
  policy.filesystem.volumes.push_back({.source = "/srv/code", .target = "/mnt", .readonly = false});
  EXPECT_EQ(plan(host, policy).readonly, std::vector<std::string>{"/mnt/docs/copilot-instructions.md"});
  policy.filesystem.volumes[0].readonly = true;
  EXPECT_TRUE(plan(host, policy).readonly.empty());
}

TEST(PlanPaths, AVolumeIsProtectedAsItsSourceIsAndHidesNothing) {
  FakeHost host = usual_host();
  host.dir("/mnt").dir("/srv/code/.vscode").dir("/srv/code").dir("/srv/code/keys");
  Policy policy;
  policy.filesystem.volumes.push_back({.source = "/srv/code", .target = "/mnt", .readonly = false});
  EXPECT_TRUE(std::ranges::count(plan(host, policy).readonly, "/mnt/.vscode"));
  policy.filesystem.entries.push_back({.path = "/mnt/keys", .access = Access::kNone});
  EXPECT_NE(refusal(host, policy).find("the volume `/srv/code` is shown there"), std::string::npos);
  policy.filesystem.entries.back().path = "/mn";
  EXPECT_EQ(refusal(host, policy), "");
}

TEST(PlanPaths, ALinkInAVolumeIsNoReadOnlyName) {
  FakeHost host = usual_host();
  host.dir("/mnt").dir("/srv/code/real").dir("/srv/code").link("/srv/code/name", "/srv/code/real");
  Policy policy = with({.path = "/mnt/name", .access = Access::kRead});
  policy.filesystem.volumes.push_back({.source = "/srv/code", .target = "/mnt", .readonly = false});
  EXPECT_NE(refusal(host, policy).find("symbolic link in the volume"), std::string::npos);
  policy.filesystem.volumes[0].readonly = true;
  EXPECT_EQ(refusal(host, policy), "");
}

TEST(PlanPaths, AReadOnlyNameInASharedMemoryDirectoryHolds) {
  FakeHost host = usual_host();
  host.file("/dev/shm/f");
  Policy policy = with({.path = "/dev/shm/f", .access = Access::kRead});
  policy.filesystem.tmp = Tmp::kShared;
  EXPECT_TRUE(std::ranges::count(plan(host, policy).readonly, "/dev/shm/f"));
}

TEST(PlanPaths, AProtectedNameBehindALinkIsKeptWhereItLies) {
  FakeHost host = usual_host();
  host.file("/home/u/ws/docs/copilot-instructions.md").link("/home/u/ws/.github", "/home/u/ws/docs");
  const PathPlan inside = plan(host, {});
  EXPECT_EQ(inside.readonly, std::vector<std::string>{"/home/u/ws/docs/copilot-instructions.md"});
  EXPECT_EQ(inside.pinned, std::vector<std::string>{"/home/u/ws/docs"});
  EXPECT_TRUE(has_gap(inside, "protect.links"));

  FakeHost outside = usual_host();
  outside.file("/srv/docs/copilot-instructions.md").link("/home/u/ws/.github", "/srv/docs");
  EXPECT_TRUE(plan(outside, {}).readonly.empty()) << "it is not writable";
  EXPECT_TRUE(has_gap(plan(outside, {}), "protect.links"));

  FakeHost dangling = usual_host();
  dangling.link("/home/u/ws/.github", "/home/u/ws/none");
  EXPECT_TRUE(plan(dangling, {}).readonly.empty());
  EXPECT_TRUE(has_gap(plan(dangling, {}), "protect.absent"));
}

// A mask shows its folder as the host has it, and the host's /tmp is nobody's here.
TEST(PathArithmetic, PrefixTwinsAreNotUnderEachOther) {
  EXPECT_TRUE(is_under("/work/a", "/work"));
  EXPECT_FALSE(is_under("/work2", "/work"));
  EXPECT_TRUE(is_under("/anything", "/"));
}

}  // namespace
}  // namespace belljar::backend
