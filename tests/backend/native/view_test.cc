// From policy to view, on a host of literal paths.
#include "backend/native/view.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/native/fake_host.h"
#include "backend/native/host.h"
#include "backend/native/tree.h"
#include "base/unique_fd.h"
#include "belljar/policy.h"
#include "launch/plan.h"
#include "launch/stage.h"
#include "support/temp_dir.h"

namespace belljar::backend {
namespace {

using test::FakeHost;

FakeHost usual_host() {
  FakeHost host;
  host.dir("/tmp", 0, 01777).dir("/var/tmp", 0, 01777).dir("/dev/shm", 0, 01777).dir("/home/u").dir("/home/u/ws").dir("/etc");
  return host;
}

const Workplace kPlace{.workspace = "/home/u/ws", .cwd = "/home/u/ws", .home = "/home/u"};

Paths plan(const FakeHost& host, const Policy& policy, const Workplace& place = kPlace) {
  auto paths = plan_paths(host, policy, place);
  EXPECT_TRUE(paths) << (paths ? "" : paths.error().line());
  return paths ? *std::move(paths) : Paths{};
}

std::string refusal(const FakeHost& host, const Policy& policy, const Workplace& place = kPlace) {
  const auto paths = plan_paths(host, policy, place);
  return paths ? "" : paths.error().line();
}

Policy with(FsEntry entry) {
  Policy policy;
  policy.filesystem.entries.push_back(std::move(entry));
  return policy;
}

bool hides(const Paths& paths, const std::string& path) {
  if (std::ranges::count(paths.view.hide_dirs, path) + std::ranges::count(paths.view.hide_files, path) > 0) return true;
  return std::ranges::any_of(paths.view.masks, [&](const auto& mask) {
    return std::ranges::any_of(mask.second.hidden, [&](const std::string& name) { return mask.first + "/" + name == path; });
  });
}

bool has_gap(const Paths& paths, const std::string& clause) {
  return std::ranges::any_of(paths.gaps, [&](const Gap& gap) { return gap.clause == clause; });
}

TEST(PlanPaths, WorkspaceIsWritableInWorkspaceWriteOnly) {
  EXPECT_EQ(plan(usual_host(), {}).writable, std::vector<std::string>{"/home/u/ws"});
  EXPECT_TRUE(plan(usual_host(), {.mode = Mode::kReadOnly}).writable.empty());
}

TEST(PlanPaths, AnEntryForTheWorkspaceCountsInReadOnly) {
  Policy policy = with({.path = "/home/u/ws", .access = Access::kWrite});
  policy.mode = Mode::kReadOnly;
  EXPECT_EQ(plan(usual_host(), policy).writable, std::vector<std::string>{"/home/u/ws"});
}

// What may be hidden lies on the stage, which lies over /tmp while the tree is built.
TEST(BuildTree, TheStageIsCoveredInEveryView) {
  FakeHost host = usual_host();
  host.dir("/").dir("/tmp/ws");
  for (const Tmp tmp : {Tmp::kPrivate, Tmp::kShared}) {
    for (const bool exclude : {false, true}) {
      for (const Mode mode : {Mode::kWorkspaceWrite, Mode::kReadOnly}) {
        for (const std::string workspace : {"/home/u/ws", "/tmp/ws", "/tmp", "/"}) {
          const Policy policy{.mode = mode, .filesystem = {.tmp = tmp, .exclude_slash_tmp = exclude}};
          const Workplace place{.workspace = workspace, .cwd = workspace, .home = "/home/u"};
          launch::Plan made;
          ASSERT_TRUE(build_tree_ops(host, plan(host, policy, place).view, made));
          const bool covered = std::ranges::any_of(made.mounts, [](const launch::MountOp& op) {
            return op.kind == launch::MountOpKind::kAttach && op.target == "/tmp" && op.flags == 0;
          });
          EXPECT_TRUE(covered) << workspace << " " << to_string(mode) << (exclude ? " excluded" : "");
        }
      }
    }
  }
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
  const Paths paths = plan(host, policy);
  EXPECT_EQ(paths.writable, (std::vector<std::string>{"/home/u/ws", "/home/u/.npm"}));
  EXPECT_TRUE(has_gap(paths, "filesystem.absent_writable"));
  for (const Origin& own : {Origin{"policy", "build.toml", 8}, Origin{"policy", "policy.toml", 8}}) {
    policy.filesystem.entries[0].origin = own;
    EXPECT_NE(refusal(host, policy).find("cannot make `/home/u/.m2` writable"), std::string::npos) << own.file;
  }
}

TEST(PlanPaths, SecretsAreHiddenWhetherTheyExistOrNot) {
  FakeHost host = usual_host();
  host.dir("/home/u/.ssh", 1000, 0700);
  const Paths paths = plan(host, {});
  EXPECT_TRUE(hides(paths, "/home/u/.ssh"));
  EXPECT_TRUE(hides(paths, "/home/u/.aws"));
  Policy open;
  open.filesystem.secrets = Secrets::kNone;
  EXPECT_FALSE(hides(plan(host, open), "/home/u/.ssh"));
}

// Once an entry that was named like one of the list made the list count as given, and 150 secrets stayed open.
TEST(PlanPaths, AnEntryThatIsOneOfTheDefaultSecretsTakesNoOtherAway) {
  FakeHost host = usual_host();
  host.dir("/home/u/.ssh", 1000, 0700).dir("/home/u/keys").dir("/home/u/state");
  for (const std::string layer : {"default secrets", "state directory", "user"}) {
    for (const RuleKind kind : {RuleKind::kDefaultSecret, RuleKind::kGiven}) {
      const Paths paths =
          plan(host, with({.path = "/home/u/keys", .access = Access::kNone, .origin = {layer, "", 0}, .kind = kind}));
      EXPECT_TRUE(hides(paths, "/home/u/keys")) << layer;
      EXPECT_TRUE(hides(paths, "/home/u/.ssh")) << layer;
      EXPECT_TRUE(hides(paths, "/home/u/.aws")) << layer;
    }
  }
}

// Of the account's home where $HOME names another: held before they are there, as those of $HOME are.
TEST(PlanPaths, SecretsOfAnotherHomeAreHeldBeforeTheyAreThere) {
  FakeHost host = usual_host();
  host.dir("/home/account").dir("/home/account/.aws");
  Policy policy;
  for (const char* path : {"/home/account/.aws", "/home/account/.netrc"})
    policy.filesystem.entries.push_back(
        {.path = path, .access = Access::kNone, .origin = {"default secrets", "", 0}, .kind = RuleKind::kDefaultSecret});
  const Paths paths = plan(host, policy);
  ASSERT_TRUE(paths.view.masks.contains("/home/account"));
  EXPECT_EQ(paths.view.masks.at("/home/account").hidden, (std::vector<std::string>{".aws", ".netrc"}));
  policy.filesystem.entries.push_back({.path = "/home/account/.netrc", .access = Access::kRead, .origin = {"flag", "", 0}});
  EXPECT_FALSE(hides(plan(host, policy), "/home/account/.netrc")) << "the twin: somebody asked for it";
  policy.filesystem.entries.back() = {.path = "/home/account/.aws/x", .access = Access::kRead, .origin = {"flag", "", 0}};
  EXPECT_NE(refusal(host, policy).find("inside hidden"), std::string::npos);
}

// The mount that makes a directory writable lies over a mask of the home.
TEST(PlanPaths, ASecretBelowAWritableDirectoryOfTheHomeIsCovered) {
  FakeHost host = usual_host();
  host.dir("/home/u/.config").dir("/home/u/.config/gh").dir("/home/u/.aws");
  const Paths paths = plan(host, with({.path = "/home/u/.config", .access = Access::kWrite}));
  EXPECT_TRUE(std::ranges::count(paths.view.hide_dirs, "/home/u/.config/gh"));
  EXPECT_TRUE(has_gap(paths, "filesystem.hidden_absent"));
  EXPECT_FALSE(std::ranges::count(paths.view.hide_dirs, "/home/u/.aws"));
  EXPECT_TRUE(hides(paths, "/home/u/.aws"));
}

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
TEST(PlanPaths, ASecretThatItsModeHoldsIsHiddenWhereABindWouldOpenIt) {
  FakeHost host = usual_host();
  host.file("/etc/shadow").close("/etc/shadow");
  EXPECT_FALSE(hides(plan(host, {}), "/etc/shadow"));
  EXPECT_TRUE(hides(plan(host, with({.path = "/etc", .access = Access::kWrite})), "/etc/shadow"));
}

TEST(PlanPaths, AWorkspaceMayLieInADefaultSecretAndNotInAHiddenDirectory) {
  FakeHost host = usual_host();
  const FsEntry above{.path = "/home/u", .access = Access::kNone, .origin = {"user", "", 0}};
  EXPECT_NE(refusal(host, with(above)).find("cannot hide `/home/u`"), std::string::npos);
  FsEntry secret = above;
  secret.kind = RuleKind::kDefaultSecret;
  EXPECT_EQ(refusal(host, with(secret)), "");
}

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

TEST(PlanPaths, ASecretThatIsALinkHidesItsTargetToo) {
  FakeHost host = usual_host();
  host.dir("/home/u/vault").link("/home/u/.ssh", "/home/u/vault");
  const Paths paths = plan(host, {});
  EXPECT_TRUE(hides(paths, "/home/u/.ssh"));
  EXPECT_TRUE(hides(paths, "/home/u/vault"));
}

TEST(PlanPaths, AnEntryForExactlyASecretOpensItAndOneInsideIsRefused) {
  FakeHost host = usual_host();
  host.dir("/home/u/.ssh").file("/home/u/.ssh/known_hosts").dir("/home/u/.ssh");
  EXPECT_FALSE(hides(plan(host, with({.path = "/home/u/.ssh", .access = Access::kRead})), "/home/u/.ssh"));
  EXPECT_NE(refusal(host, with({.path = "/home/u/.ssh/known_hosts", .access = Access::kRead})).find("inside hidden `/home/u/.ssh`"),
            std::string::npos);
}

TEST(PlanPaths, WithoutOverlaysExistingSecretsAreCoveredAndAbsentOnesAreAGap) {
  FakeHost host = usual_host();
  host.dir("/home/u/.ssh", 1000, 0700);
  Workplace place = kPlace;
  place.overlays = false;
  const Paths paths = plan(host, {}, place);
  EXPECT_TRUE(std::ranges::count(paths.view.hide_dirs, "/home/u/.ssh"));
  EXPECT_TRUE(paths.view.masks.empty());
  EXPECT_TRUE(has_gap(paths, "filesystem.hidden_absent"));
}

TEST(PlanPaths, TheWorkspaceCannotBeHidden) {
  EXPECT_NE(
      refusal(usual_host(), with({.path = "/home/u", .access = Access::kNone})).find("the workspace `/home/u/ws` lies inside it"),
      std::string::npos);
}

// protect = "all", or nobody who judges contents: mounts hold what they can.
Policy protect_all() {
  Policy policy;
  policy.filesystem.protect = Protect::kAll;
  return policy;
}

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
  const Paths paths = plan(host, protect_all());
  EXPECT_TRUE(std::ranges::count(paths.readonly, "/home/u/ws/store/wt"));
  EXPECT_TRUE(std::ranges::count(paths.pinned, "/home/u/ws/store"));
  EXPECT_TRUE(has_gap(paths, "protect.files"));
}

TEST(PlanPaths, AWorkspaceBelowTmpIsProtectedAndHiddenInLikeAnyOther) {
  FakeHost host = usual_host();
  host.dir("/tmp/ws/.vscode").file("/tmp/ws/secret").dir("/tmp/ws");
  const Workplace place{.workspace = "/tmp/ws", .cwd = "/tmp/ws", .home = "/home/u"};
  const Paths paths = plan(host, with({.path = "/tmp/ws/secret", .access = Access::kNone}), place);
  EXPECT_TRUE(std::ranges::count(paths.readonly, "/tmp/ws/.vscode"));
  EXPECT_TRUE(hides(paths, "/tmp/ws/secret"));
}

TEST(PlanPaths, GlobsAreAGapByName) {
  EXPECT_TRUE(has_gap(plan(usual_host(), with({.path = "**/.env", .glob = true, .access = Access::kNone})), "filesystem.globs"));
}

TEST(PlanPaths, TmpIsPrivateUnlessShared) {
  const auto is_private = [](const Paths& paths) {
    return std::ranges::any_of(paths.view.private_dirs, [](const PrivateDir& dir) { return dir.target == "/tmp"; });
  };
  EXPECT_TRUE(is_private(plan(usual_host(), {})));
  Policy shared;
  shared.filesystem.tmp = Tmp::kShared;
  EXPECT_FALSE(is_private(plan(usual_host(), shared)));
}

// The key takes away: a file in the workspace may set it.
TEST(PlanPaths, AnExcludedTmpShowsNothingOfTheHostsUnlessShared) {
  Policy policy;
  policy.filesystem.exclude_slash_tmp = true;
  const auto shown = [&](const Paths& paths) {
    return std::ranges::count_if(paths.view.binds, [](const Bind& bind) { return bind.target == "/tmp"; });
  };
  const Paths excluded = plan(usual_host(), policy);
  EXPECT_EQ(shown(excluded), 0);
  EXPECT_TRUE(
      std::ranges::any_of(excluded.view.private_dirs, [](const PrivateDir& dir) { return dir.target == "/tmp" && dir.readonly; }));
  policy.filesystem.tmp = Tmp::kShared;
  const Paths shared = plan(usual_host(), policy);
  EXPECT_EQ(shown(shared), 1);
  EXPECT_FALSE(std::ranges::count(shared.writable, "/tmp"));
}

Workplace in_transaction() {
  Workplace place = kPlace;
  place.layers =
      WorkspaceLayers{.pool = "/home/u/.local/state/belljar/txn/1-2/layers", .lower = {"1/up"}, .upper = "2/up", .work = "2/work"};
  return place;
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

// Whatever the policy treats apart below the workspace comes out of the overlay: the host's own directory is only its floor.
// Root's are made while the rest is still being planned (launch/early.h): where that fails the child makes them again, later.
TEST(BuildTree, TheHiddenNamesNeedNothingElseOnTheStage) {
  FakeHost host = usual_host();
  host.dir("/").dir("/home/u/.ssh").file("/home/u/.netrc").dir("/home/u/.config");
  const Paths paths = plan(host, {});
  ASSERT_TRUE(hides(paths, "/home/u/.aws")) << "an absent one, which is a link";
  launch::Plan plan;
  build_names(host, paths.view, plan);
  EXPECT_FALSE(plan.stage_names.empty());
  const belljar::test::TempDir stage;
  const UniqueFd place(::open(stage.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  EXPECT_EQ(launch::run_stage_ops(place.get(), plan.stage_names, launch::MayBind::kNo), 0);
}

TEST(BuildTree, InATransactionNoMountLeadsAroundTheLayers) {
  FakeHost host = usual_host();
  host.dir("/home/u/ws/.git").dir("/home/u/ws/sub").dir("/home/u/ws/sub/deep").dir("/home/u/ws/out");
  Policy policy = with({.path = "/home/u/ws/sub/deep", .access = Access::kRead});
  policy.filesystem.entries.push_back({.path = "/home/u/ws/out", .access = Access::kWrite});
  const auto captured = [&](const Workplace& place) {
    launch::Plan made;
    const Paths paths = plan(host, policy, place);
    EXPECT_TRUE(build_tree_ops(host, paths.view, made));
    std::vector<std::string> sources;
    for (const launch::MountOp& op : made.mounts) {
      const bool readonly = (op.attr_set & MOUNT_ATTR_RDONLY) != 0;
      if (op.kind == launch::MountOpKind::kCapture && is_under(op.source, kPlace.workspace))
        sources.push_back(op.source + (readonly ? " ro" : " rw"));
    }
    return sources;
  };
  EXPECT_EQ(captured(in_transaction()), std::vector<std::string>{"/home/u/ws ro"});
  EXPECT_GE(captured(kPlace).size(), 4U);
}

// What a command finds at a path: the mount that was attached last at or above it.
class Seen {
 public:
  Seen(const FakeHost& host, const Policy& policy, const Workplace& place) : paths_(plan(host, policy, place)) {
    EXPECT_TRUE(build_tree_ops(host, paths_.view, plan_));
    for (const launch::MountOp& op : plan_.mounts) {
      if (op.kind == launch::MountOpKind::kAttach) attached_.push_back(&op);
      else made_.try_emplace(op.slot, &op);
    }
  }
  // Nothing is found below what is hidden.
  Access at(const std::string& path) const {
    for (std::string up = path; up != "/"; up = parent_of(up)) {
      if (shown_at(up) == Access::kNone) return Access::kNone;
    }
    return shown_at(path);
  }
  std::string source_of(const std::string& path) const {
    const launch::MountOp* last = last_at(path);
    return last == nullptr ? "" : made_in(last->slot).source;
  }
  bool is_mount_point(const std::string& path) const {
    const launch::MountOp* last = last_at(path);
    return last != nullptr && last->target == path;
  }

 private:
  Access shown_at(const std::string& path) const {
    const launch::MountOp* last = last_at(path);
    if (last == nullptr) return Access::kRead;  // the floor
    if (const auto mask = paths_.view.masks.find(last->target); mask != paths_.view.masks.end()) {
      const bool hidden =
          std::ranges::any_of(mask->second.hidden, [&](const auto& name) { return is_under(path, last->target + "/" + name); });
      return hidden ? Access::kNone : Access::kRead;
    }
    const launch::MountOp& made = made_in(last->slot);
    if (made.source.starts_with("/tmp/hidden")) return Access::kNone;
    return (made.attr_set & MOUNT_ATTR_RDONLY) != 0 ? Access::kRead : Access::kWrite;
  }
  const launch::MountOp* last_at(const std::string& path) const {
    const launch::MountOp* last = nullptr;
    for (const launch::MountOp* op : attached_) {
      if (is_under(path, op->target)) last = op;
    }
    return last;
  }
  const launch::MountOp& made_in(int slot) const { return *made_.at(slot); }

  Paths paths_;
  launch::Plan plan_;
  std::vector<const launch::MountOp*> attached_;  // in order
  std::map<int, const launch::MountOp*> made_;    // by slot
};

// Every directory of three levels below `root`, and `root`.
std::vector<std::string> small_tree(const std::string& root) {
  std::vector<std::string> all{root};
  for (std::size_t from = 0, level = 0; level < 3; ++level) {
    const std::size_t end = all.size();
    for (; from < end; ++from) {
      for (const char* name : {"/a", "/b"}) all.push_back(all[from] + name);
    }
  }
  return all;
}

// Once the pins of a deeper read-only name lay, writable, over a shallower one.
TEST(BuildTree, WhateverIsNestedInWhatEachPathIsAsItsRuleSays) {
  FakeHost host = usual_host();
  host.dir("/");
  std::vector<std::string> tree = small_tree(kPlace.workspace);
  for (const std::string& path : small_tree("/home/u/other")) tree.push_back(path);
  for (const std::string& path : small_tree("/srv")) tree.push_back(path);
  for (const std::string& path : tree) host.dir(path);
  std::mt19937 random(7);
  const auto any = [&](std::size_t below) { return std::uniform_int_distribution<std::size_t>(0, below - 1)(random); };
  int planned = 0;
  for (int round = 0; round < 150; ++round) {
    Policy policy;
    policy.filesystem.caches = Caches::kOff;
    std::string told;
    for (std::size_t count = 1 + any(6); count > 0; --count) {
      constexpr Access kKinds[] = {Access::kRead, Access::kRead, Access::kWrite, Access::kWrite, Access::kNone};
      policy.filesystem.entries.push_back({.path = tree[any(tree.size())], .access = kKinds[any(std::size(kKinds))]});
      told += std::string(to_string(policy.filesystem.entries.back().access)) + " " + policy.filesystem.entries.back().path + "\n";
    }
    const Workplace place = any(2) == 0 ? kPlace : in_transaction();
    if (!plan_paths(host, policy, place)) continue;  // something inside of what is hidden
    ++planned;
    const Seen seen(host, policy, place);
    for (const std::string& path : tree) {
      const FsEntry* rule = find_rule(policy.filesystem, path);
      const Access granted = is_under(path, kPlace.workspace) && (rule == nullptr || !is_under(rule->path, kPlace.workspace))
                                 ? Access::kWrite
                             : rule == nullptr ? Access::kRead
                                               : rule->access;
      ASSERT_EQ(to_string(seen.at(path)), to_string(granted)) << path << (place.layers ? " in a transaction" : "") << "\n" << told;
    }
    for (const FsEntry& entry : policy.filesystem.entries) {
      if (seen.at(entry.path) != Access::kRead) continue;
      for (std::string up = parent_of(entry.path); up != "/"; up = parent_of(up)) {
        ASSERT_TRUE(seen.at(up) != Access::kWrite || seen.is_mount_point(up)) << up << " could be renamed\n" << told;
      }
    }
  }
  EXPECT_GT(planned, 20);
}

TEST(BuildTree, AProtectedNameOpensNoReadOnlyDirectoryAboveIt) {
  FakeHost host = usual_host();
  host.dir("/").file("/home/u/ws/.github/copilot-instructions.md").dir("/home/u/ws/.github/workflows");
  const Seen kept(host, with({.path = "/home/u/ws/.github", .access = Access::kRead}), kPlace);
  EXPECT_EQ(kept.at("/home/u/ws/.github/workflows"), Access::kRead);
  EXPECT_EQ(kept.at("/home/u/ws/.github/copilot-instructions.md"), Access::kRead);
  const Seen open(host, {}, kPlace);
  EXPECT_EQ(open.at("/home/u/ws/.github/workflows"), Access::kWrite);
  EXPECT_EQ(open.at("/home/u/ws/.github/copilot-instructions.md"), Access::kRead);
}

TEST(BuildTree, TheCommonRepositoryStaysReadOnlyAboveItsWorktrees) {
  FakeHost host = usual_host();
  host.dir("/").dir("/home/u/ws/main/worktrees/wt").file("/home/u/ws/main/worktrees/wt/commondir", "../..\n");
  host.file("/home/u/ws/.git", "gitdir: main/worktrees/wt\n");
  host.link("/home/u/ws/main/worktrees/wt/../..", "/home/u/ws/main");
  const Seen seen(host, protect_all(), kPlace);
  EXPECT_EQ(seen.at("/home/u/ws/main/worktrees"), Access::kRead);
  EXPECT_EQ(seen.at("/home/u/ws"), Access::kWrite);
}

TEST(BuildTree, AReadOnlyNameBelowAVolumeIsTheVolumes) {
  FakeHost host = usual_host();
  host.dir("/").file("/home/u/ws/vol/sub/f").dir("/srv/data/sub").file("/srv/data/sub/f").dir("/srv/same/sub");
  for (const bool readonly : {true, false}) {
    Policy policy = with({.path = "/home/u/ws/vol/sub/f", .access = Access::kRead});
    policy.filesystem.entries.push_back({.path = "/srv/same/sub", .access = Access::kRead});
    policy.filesystem.volumes = {{.source = "/srv/data", .target = "/home/u/ws/vol", .readonly = readonly},
                                 {.source = "/srv/same", .target = "/srv/same", .readonly = readonly}};
    const Seen seen(host, policy, kPlace);
    const Access rest = readonly ? Access::kRead : Access::kWrite;
    EXPECT_EQ(seen.at("/home/u/ws/vol/sub/f"), Access::kRead);
    EXPECT_EQ(seen.at("/home/u/ws/vol/sub"), rest);
    EXPECT_EQ(seen.at("/home/u/ws/vol"), rest);
    EXPECT_TRUE(is_under(seen.source_of("/home/u/ws/vol/sub"), "/srv/data")) << seen.source_of("/home/u/ws/vol/sub");
    EXPECT_EQ(seen.source_of("/home/u/ws/vol/sub/f"), readonly ? "/srv/data" : "/srv/data/sub/f");
    EXPECT_EQ(seen.at("/srv/same"), rest);
    EXPECT_EQ(seen.at("/srv/same/sub"), Access::kRead);
    EXPECT_EQ(seen.at("/home/u/ws"), Access::kWrite);
  }
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

TEST(BuildTree, AVolumeBelowAHiddenPlaceIsRefused) {
  FakeHost host = usual_host();
  host.dir("/").dir("/srv/data").dir("/usr/share/doc/sub");
  for (const char* hidden : {"/usr/share/doc", "/usr/share/other"}) {
    Policy policy = with({.path = hidden, .access = Access::kNone});
    policy.filesystem.volumes.push_back({.source = "/srv/data", .target = "/usr/share/doc/sub", .readonly = false});
    launch::Plan made;
    const auto built = build_tree_ops(host, plan(host, policy).view, made);
    EXPECT_EQ(static_cast<bool>(built), hidden != std::string("/usr/share/doc")) << (built ? "" : built.error().line());
  }
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

TEST(BuildTree, ADefaultSecretInAVolumeIsTheVolumes) {
  FakeHost host = usual_host();
  host.dir("/")
      .dir("/home/u/.aws")
      .dir("/home/u/.config/op")
      .dir("/home/u/.config")
      .dir("/srv/keys")
      .dir("/srv/etc/gh")
      .dir("/srv/etc/git");
  Policy policy;
  policy.filesystem.volumes = {{.source = "/srv/keys", .target = "/home/u/.aws"},
                               {.source = "/srv/etc", .target = "/home/u/.config"}};
  const Seen seen(host, policy, kPlace);
  EXPECT_EQ(seen.source_of("/home/u/.aws/key"), "/srv/keys") << "somebody wants it there";
  EXPECT_EQ(seen.at("/home/u/.config/gh"), Access::kNone);
  EXPECT_EQ(seen.source_of("/home/u/.config/git"), "/srv/etc");
  EXPECT_EQ(seen.source_of("/home/u/.config/op"), "/srv/etc") << "no mask of the host's directory";
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

TEST(BuildTree, ACacheLiesNeitherOverAVolumeNorOverAReadOnlyName) {
  FakeHost host = usual_host();
  host.dir("/").dir("/home/u/.cache").dir("/home/u/.cache/kept").dir("/home/u/.cache/other").dir("/srv/data");
  const Seen seen(host, with({.path = "/home/u/.cache/kept", .access = Access::kRead}), kPlace);
  EXPECT_EQ(seen.at("/home/u/.cache/kept"), Access::kRead);
  EXPECT_EQ(seen.at("/home/u/.cache/other"), Access::kWrite);
  Policy policy;
  policy.filesystem.volumes.push_back({.source = "/srv/data", .target = "/home/u/.cache"});
  EXPECT_EQ(Seen(host, policy, kPlace).source_of("/home/u/.cache/other"), "/srv/data");
}

// What the host has mounted below a masked directory is put back: never over the mask's names.
TEST(BuildTree, AMountOfTheHostShowsNothingHidden) {
  FakeHost host = usual_host();
  host.dir("/").mounted("/home/u/.ssh").mounted("/home/u/.config").dir("/home/u/.config/gh").mounted("/home/u/data");
  host.dir("/home/u/ws/secret").mounted("/home/u/ws/secret/m").mounted("/home/u/ws/shown");
  for (const Workplace& place : {kPlace, in_transaction()}) {
    const Seen seen(host, with({.path = "/home/u/ws/secret", .access = Access::kNone}), place);
    for (const std::string path :
         {"/home/u/.ssh", "/home/u/.config/gh", "/home/u/.config/op", "/home/u/ws/secret", "/home/u/ws/secret/m"})
      EXPECT_EQ(seen.at(path), Access::kNone) << path;
    EXPECT_EQ(seen.source_of("/home/u/data"), "/home/u/data");
    EXPECT_EQ(seen.at("/home/u/.config/git"), Access::kRead);
  }
  // No layer can hold what lies on another file system.
  const Seen layered(host, with({.path = "/home/u/ws/shown", .access = Access::kWrite}), in_transaction());
  EXPECT_EQ(layered.source_of("/home/u/ws/shown"), "/home/u/ws/shown");
  EXPECT_EQ(layered.at("/home/u/ws/shown"), Access::kRead);
}

TEST(PlanPaths, AProtectedNameBehindALinkIsKeptWhereItLies) {
  FakeHost host = usual_host();
  host.file("/home/u/ws/docs/copilot-instructions.md").link("/home/u/ws/.github", "/home/u/ws/docs");
  const Paths inside = plan(host, {});
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

TEST(BuildTree, AProtectedNameBelowAHiddenOneNeedsNoMountOfItsOwn) {
  FakeHost host = usual_host();
  host.dir("/").file("/home/u/ws/.github/copilot-instructions.md");
  const Seen hidden(host, with({.path = "/home/u/ws/.github", .access = Access::kNone}), kPlace);
  EXPECT_FALSE(hidden.is_mount_point("/home/u/ws/.github/copilot-instructions.md"));
  EXPECT_EQ(hidden.at("/home/u/ws/.github/copilot-instructions.md"), Access::kNone);
  const Seen other(host, with({.path = "/home/u/ws/other", .access = Access::kNone}), kPlace);
  EXPECT_TRUE(other.is_mount_point("/home/u/ws/.github/copilot-instructions.md"));
}

// The masks of what lies below it once lay over the mask that hides the directory itself.
TEST(BuildTree, AHiddenDirectoryStaysHiddenWhateverIsHiddenInIt) {
  FakeHost host = usual_host();
  host.dir("/").dir("/home/u/.ssh").dir("/home/u/.cache").dir("/srv/a/b/c").dir("/srv/a/b").dir("/srv/ws").dir("/srv/a/other");
  const Workplace place{.workspace = "/srv/ws", .cwd = "/srv/ws", .home = "/home/u"};
  const Seen home(host, with({.path = "/home/u", .access = Access::kNone}), place);
  EXPECT_EQ(home.at("/home/u"), Access::kNone);
  EXPECT_EQ(Seen(host, {}, place).at("/home/u"), Access::kRead);
  Policy nested = with({.path = "/srv/a/b/c", .access = Access::kNone});
  EXPECT_EQ(Seen(host, nested, place).at("/srv/a/b"), Access::kRead);
  nested.filesystem.entries.push_back({.path = "/srv/a/b", .access = Access::kNone});
  EXPECT_EQ(Seen(host, nested, place).at("/srv/a/b"), Access::kNone);
  EXPECT_EQ(Seen(host, nested, place).at("/srv/a/other"), Access::kRead);
}

// A mask shows its folder as the host has it, and the host's /tmp is nobody's here.
TEST(PlanPaths, NoMaskShowsAPrivateDirectoryOfTheHosts) {
  FakeHost host = usual_host();
  const Workplace absent{.workspace = "/home/u/ws", .cwd = "/home/u/ws", .home = "/tmp/none"};
  EXPECT_TRUE(plan(host, {}, absent).view.masks.empty());
  host.dir("/tmp/home");
  const Workplace below{.workspace = "/home/u/ws", .cwd = "/home/u/ws", .home = "/tmp/home"};
  const Paths hidden = plan(host, with({.path = "/tmp/home", .access = Access::kNone}), below);
  EXPECT_FALSE(hidden.view.masks.contains("/tmp"));
  EXPECT_TRUE(hides(hidden, "/tmp/home"));
  EXPECT_TRUE(plan(host, {}, below).view.masks.contains("/tmp/home")) << "the twin";
}

TEST(PathArithmetic, PrefixTwinsAreNotUnderEachOther) {
  EXPECT_TRUE(is_under("/work/a", "/work"));
  EXPECT_FALSE(is_under("/work2", "/work"));
  EXPECT_TRUE(is_under("/anything", "/"));
}

}  // namespace
}  // namespace belljar::backend
