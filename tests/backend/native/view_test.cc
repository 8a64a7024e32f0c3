// From policy to view, on a host of literal paths.
#include "backend/native/view.h"

#include <gtest/gtest.h>
#include <sys/mount.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/native/fake_host.h"
#include "backend/native/host.h"
#include "backend/native/tree.h"
#include "belljar/policy.h"
#include "launch/plan.h"

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

Workplace in_transaction() {
  Workplace place = kPlace;
  place.layers =
      WorkspaceLayers{.pool = "/home/u/.local/state/belljar/txn/1-2/layers", .lower = {"1/up"}, .upper = "2/up", .work = "2/work"};
  return place;
}

TEST(PlanPaths, ATransactionNeedsAWritableWorkspaceAndNoWayAround) {
  FakeHost host = usual_host();
  Policy policy;
  policy.filesystem.volumes.push_back({.source = "/home/u", .target = "/mnt", .readonly = false});
  host.dir("/mnt");
  EXPECT_NE(refusal(host, policy, in_transaction()).find("shows the workspace a second time"), std::string::npos);
  EXPECT_EQ(refusal(host, policy), "");
  policy.filesystem.volumes[0].readonly = true;
  EXPECT_EQ(refusal(host, policy, in_transaction()), "");
  EXPECT_NE(refusal(host, {.mode = Mode::kReadOnly}, in_transaction()).find("nothing to hold back"), std::string::npos);
}

// Whatever the policy treats apart below the workspace comes out of the overlay: the host's own directory is only its floor.
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

TEST(PathArithmetic, PrefixTwinsAreNotUnderEachOther) {
  EXPECT_TRUE(is_under("/work/a", "/work"));
  EXPECT_FALSE(is_under("/work2", "/work"));
  EXPECT_TRUE(is_under("/anything", "/"));
}

}  // namespace
}  // namespace belljar::backend
