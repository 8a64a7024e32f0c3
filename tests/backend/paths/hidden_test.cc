// Which names a plan hides, and what it leaves of a hidden directory, on a host of literal paths.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/paths/fake_host.h"
#include "backend/paths/plan.h"
#include "backend/paths/support_plan.h"
#include "backend/paths/view.h"
#include "belljar/policy.h"

namespace belljar::backend {
namespace {

TEST(PlanPaths, AWorkspaceInAHiddenDirectoryOpensNothingElseOfIt) {
  FakeHost host = usual_host();
  host.dir("/home/u/.ssh/w");
  const Workplace place{.workspace = "/home/u/.ssh/w", .cwd = "/home/u/.ssh/w", .home = "/home/u"};
  for (const Mode mode : {Mode::kWorkspaceWrite, Mode::kReadOnly}) {
    const PathPlan paths = plan(host, {.mode = mode}, place);
    EXPECT_EQ(paths.ways, std::vector<std::string>{"/home/u/.ssh"});
    EXPECT_TRUE(std::ranges::any_of(paths.view.private_dirs,
                                    [](const PrivateDir& dir) { return dir.target == "/home/u/.ssh" && dir.readonly; }));
    EXPECT_TRUE(std::ranges::any_of(paths.view.binds, [&](const Bind& bind) {
      return bind.target == place.workspace && bind.readonly == (mode == Mode::kReadOnly);
    }));
    EXPECT_FALSE(hides(paths, "/home/u/.ssh"));
  }
  Policy asked = with({.path = "/home/u/.ssh", .access = Access::kRead});
  EXPECT_TRUE(plan(host, asked, place).ways.empty()) << "the twin: somebody asked for all of it";
  Policy within = with({.path = "/home/u/.ssh/w/docs", .access = Access::kRead});
  EXPECT_EQ(refusal(host, within, place), "") << "a part of the workspace";
  const Workplace itself{.workspace = "/home/u/.ssh", .cwd = "/home/u/.ssh", .home = "/home/u"};
  EXPECT_TRUE(plan(host, {}, itself).ways.empty());
}

TEST(PlanPaths, SiblingsAreCoveredAndOneAroundLeavesTheWayToTheWorkspace) {
  FakeHost host = usual_host();
  host.dir("/srv/b").dir("/home/u/c").dir("/srv/closed", 0, 0700).dir("/tmp/t").dir("/srv/pool/1").dir("/srv/pool/2");
  Workplace place = kPlace;
  place.siblings = SiblingWorkspaces{.hidden = {"/home/u/c", "/srv/b", "/srv/closed", "/srv/gone", "/tmp/t"}};
  const PathPlan paths = plan(host, {}, place);
  for (const char* name : {"/srv/b", "/home/u/c", "/srv/closed"}) EXPECT_TRUE(hides(paths, name)) << name;
  EXPECT_FALSE(hides(paths, "/srv/gone"));
  EXPECT_FALSE(hides(paths, "/tmp/t")) << "nothing of /tmp is seen";
  EXPECT_FALSE(hides(plan(host, {}), "/srv/b")) << "the twin";
  EXPECT_EQ(paths.hidden, plan(host, {}).hidden) << "no secrets";
  Workplace pooled = kPlace;
  pooled.workspace = pooled.cwd = "/srv/pool/1";
  pooled.siblings = SiblingWorkspaces{.hidden = {"/srv/pool"}};
  EXPECT_EQ(plan(host, {}, pooled).ways, std::vector<std::string>{"/srv/pool"});
  pooled.siblings.reset();
  EXPECT_TRUE(plan(host, {}, pooled).ways.empty()) << "the twin";
}

TEST(PlanPaths, RootHidesTheHomeOfTheWorkspacesOwnerToo) {
  FakeHost host = usual_host();
  host.root().dir("/root", 0, 0700).file("/etc/passwd", "u:x:1000:1000::/home/u:/bin/sh\n").dir("/home/u/.ssh");
  host.file("/home/u/.netrc");
  const Workplace place{.workspace = "/home/u/ws", .cwd = "/home/u/ws", .home = "/root"};
  const PathPlan paths = plan(host, {}, place);
  for (const char* name : {"/home/u/.ssh", "/home/u/.netrc", "/home/u/.aws", "/root/.ssh"}) EXPECT_TRUE(hides(paths, name)) << name;
  EXPECT_FALSE(hides(plan(host, with({.path = "/home/u/.ssh", .access = Access::kRead}), place), "/home/u/.ssh"));
  host.dir("/home/u", 1000, 0700);
  EXPECT_TRUE(plan(host, {}, place).view.masks.count("/home/u") == 0)
      << "nobody passes: the way to the workspace is all that is seen";
}

TEST(PlanPaths, SecretsAreHiddenWhetherTheyExistOrNot) {
  FakeHost host = usual_host();
  host.dir("/home/u/.ssh", 1000, 0700);
  const PathPlan paths = plan(host, {});
  EXPECT_TRUE(hides(paths, "/home/u/.ssh"));
  EXPECT_TRUE(hides(paths, "/home/u/.aws"));
  Policy open;
  open.filesystem.secrets = Secrets::kNone;
  EXPECT_FALSE(hides(plan(host, open), "/home/u/.ssh"));
}

TEST(PlanPaths, AnEntryThatIsOneOfTheDefaultSecretsTakesNoOtherAway) {
  FakeHost host = usual_host();
  host.dir("/home/u/.ssh", 1000, 0700).dir("/home/u/keys").dir("/home/u/state");
  for (const std::string layer : {"default secrets", "state directory", "user"}) {
    for (const RuleKind kind : {RuleKind::kDefaultSecret, RuleKind::kGiven}) {
      const PathPlan paths =
          plan(host, with({.path = "/home/u/keys", .access = Access::kNone, .origin = {layer, "", 0}, .kind = kind}));
      EXPECT_TRUE(hides(paths, "/home/u/keys")) << layer;
      EXPECT_TRUE(hides(paths, "/home/u/.ssh")) << layer;
      EXPECT_TRUE(hides(paths, "/home/u/.aws")) << layer;
    }
  }
}

TEST(PlanPaths, SecretsOfAnotherHomeAreHeldBeforeTheyAreThere) {
  FakeHost host = usual_host();
  host.dir("/home/account").dir("/home/account/.aws");
  Policy policy;
  for (const char* path : {"/home/account/.aws", "/home/account/.netrc"})
    policy.filesystem.entries.push_back(
        {.path = path, .access = Access::kNone, .origin = {"default secrets", "", 0}, .kind = RuleKind::kDefaultSecret});
  const PathPlan paths = plan(host, policy);
  ASSERT_TRUE(paths.view.masks.contains("/home/account"));
  EXPECT_EQ(paths.view.masks.at("/home/account").hidden, (std::vector<std::string>{".aws", ".netrc"}));
  policy.filesystem.entries.push_back({.path = "/home/account/.netrc", .access = Access::kRead, .origin = {"flag", "", 0}});
  EXPECT_FALSE(hides(plan(host, policy), "/home/account/.netrc")) << "the twin: somebody asked for it";
  policy.filesystem.entries.back() = {.path = "/home/account/.aws/x", .access = Access::kRead, .origin = {"flag", "", 0}};
  EXPECT_NE(refusal(host, policy).find("inside hidden"), std::string::npos);
}

TEST(PlanPaths, ASecretBelowAWritableDirectoryOfTheHomeIsCovered) {
  FakeHost host = usual_host();
  host.dir("/home/u/.config").dir("/home/u/.config/gh").dir("/home/u/.aws");
  const PathPlan paths = plan(host, with({.path = "/home/u/.config", .access = Access::kWrite}));
  EXPECT_TRUE(std::ranges::count(paths.view.hide_dirs, "/home/u/.config/gh"));
  EXPECT_TRUE(has_gap(paths, "filesystem.hidden_absent"));
  EXPECT_FALSE(std::ranges::count(paths.view.hide_dirs, "/home/u/.aws"));
  EXPECT_TRUE(hides(paths, "/home/u/.aws"));
}

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

TEST(PlanPaths, ASecretThatIsALinkHidesItsTargetToo) {
  FakeHost host = usual_host();
  host.dir("/home/u/vault").link("/home/u/.ssh", "/home/u/vault");
  const PathPlan paths = plan(host, {});
  EXPECT_TRUE(hides(paths, "/home/u/.ssh"));
  EXPECT_TRUE(hides(paths, "/home/u/vault"));
}

TEST(PlanPaths, AnEntryForExactlyASecretOpensItAndOneInsideIsRefused) {
  FakeHost host = usual_host();
  host.dir("/home/u/.ssh").file("/home/u/.ssh/known_hosts").dir("/home/u/.ssh");
  EXPECT_FALSE(hides(plan(host, with({.path = "/home/u/.ssh", .access = Access::kRead})), "/home/u/.ssh"));
  const std::string inside = refusal(host, with({.path = "/home/u/.ssh/known_hosts", .access = Access::kRead}));
  EXPECT_NE(inside.find("inside hidden `/home/u/.ssh`"), std::string::npos) << inside;
  EXPECT_NE(inside.find("one of the default secrets (filesystem.secrets, built-in)"), std::string::npos) << inside;
  EXPECT_NE(inside.find("--read /home/u/.ssh opens all of it"), std::string::npos) << inside;
}

TEST(PlanPaths, WithoutOverlaysExistingSecretsAreCoveredAndAbsentOnesAreAGap) {
  FakeHost host = usual_host();
  host.dir("/home/u/.ssh", 1000, 0700);
  Workplace place = kPlace;
  place.overlays = false;
  const PathPlan paths = plan(host, {}, place);
  EXPECT_TRUE(std::ranges::count(paths.view.hide_dirs, "/home/u/.ssh"));
  EXPECT_TRUE(paths.view.masks.empty());
  EXPECT_TRUE(has_gap(paths, "filesystem.hidden_absent"));
}

TEST(PlanPaths, WhatIsWritableInAHiddenDirectoryIsShownAlone) {
  FakeHost host = usual_host();
  host.dir("/srv").dir("/srv/x").dir("/srv/x/y").dir("/srv/x/y/z").dir("/home/u/.ssh").dir("/home/u/.ssh/w");
  Policy policy = with({.path = "/srv/x", .access = Access::kNone});
  policy.filesystem.entries.push_back({.path = "/srv/x/y", .access = Access::kWrite});
  policy.filesystem.entries.push_back({.path = "/srv/x/y/z", .access = Access::kNone});
  const PathPlan paths = plan(host, policy);
  EXPECT_EQ(paths.ways, std::vector<std::string>{"/srv/x"});
  EXPECT_FALSE(hides(paths, "/srv/x")) << "no cover over what is shown in it";
  EXPECT_TRUE(hides(paths, "/srv/x/y/z"));
  EXPECT_TRUE(std::ranges::any_of(
      paths.view.private_dirs, [](const PrivateDir& dir) { return dir.target == "/srv/x" && dir.readonly && dir.mode == 0755; }));
  EXPECT_TRUE(std::ranges::any_of(paths.view.binds, [](const Bind& bind) { return bind.target == "/srv/x/y" && !bind.readonly; }));
  EXPECT_EQ(plan(host, with({.path = "/home/u/.ssh/w", .access = Access::kWrite})).ways, std::vector<std::string>{"/home/u/.ssh"});
  policy.filesystem.entries.front().kind = RuleKind::kNarrowing;
  EXPECT_NE(refusal(host, policy).find("inside hidden `/srv/x`"), std::string::npos);
  policy.filesystem.entries.front() = {.path = "/home", .access = Access::kNone};
  policy.filesystem.entries.back() = {.path = "/home/u/.ssh/w", .access = Access::kWrite};
  EXPECT_NE(refusal(host, policy).find("inside hidden `/home`"), std::string::npos);
}

TEST(PlanPaths, AHiddenNameBelowAnotherIsThatOne) {
  FakeHost host = usual_host();
  host.dir("/home/u/a/b/c");
  const std::size_t usual = plan(host, {}).hidden;
  for (const bool deep_first : {true, false}) {
    Policy policy = with({.path = deep_first ? "/home/u/a/b/c" : "/home/u/a", .access = Access::kNone});
    policy.filesystem.entries.push_back({.path = deep_first ? "/home/u/a" : "/home/u/a/b/c", .access = Access::kNone});
    const PathPlan paths = plan(host, policy);
    EXPECT_TRUE(hides(paths, "/home/u/a"));
    EXPECT_FALSE(std::ranges::count(paths.view.masks.at("/home/u").hidden, "a/b/c"));
    EXPECT_EQ(paths.hidden, usual + 1);
  }
  Policy beside = with({.path = "/home/u/a/b/c", .access = Access::kNone});
  beside.filesystem.entries.push_back({.path = "/home/u/a/b2", .access = Access::kNone});
  EXPECT_EQ(plan(host, beside).hidden, usual + 2) << "the twin";
}

TEST(PlanPaths, WhatIsHiddenInAHiddenDirectoryThatLeavesAWayShowsNothingBesideIt) {
  FakeHost host = usual_host();
  host.dir("/srv")
      .dir("/srv/x")
      .dir("/srv/x/y")
      .dir("/srv/x/z")
      .file("/srv/x/z/s")
      .file("/srv/x/s")
      .dir("/srv/x/y/d")
      .file("/srv/x/y/d/s");
  for (const bool deep_first : {true, false}) {
    Policy policy = with({.path = "/srv/x/y", .access = Access::kWrite});
    std::vector<std::string> hidden = {"/srv/x", "/srv/x/s", "/srv/x/z/s", "/srv/x/y/d"};
    if (deep_first) std::ranges::reverse(hidden);
    for (const std::string& path : hidden) policy.filesystem.entries.push_back({.path = path, .access = Access::kNone});
    const PathPlan paths = plan(host, policy);
    EXPECT_EQ(paths.ways, std::vector<std::string>{"/srv/x"});
    for (const char* folder : {"/srv/x", "/srv/x/z"}) EXPECT_FALSE(paths.view.masks.contains(folder)) << folder << deep_first;
    for (const char* name : {"/srv/x/s", "/srv/x/z/s", "/srv/x/z/other"}) EXPECT_EQ(paths.access_at(name), Access::kNone) << name;
    EXPECT_TRUE(hides(paths, "/srv/x/y/d")) << "what is shown has hidden names of its own";
    EXPECT_EQ(paths.access_at("/srv/x/y/a"), Access::kWrite);
  }
  EXPECT_TRUE(plan(host, with({.path = "/srv/x/z/s", .access = Access::kNone})).view.masks.contains("/srv/x/z")) << "the twin";
  host.dir("/home/u/x").dir("/home/u/x/y").dir("/home/u/x/z").file("/home/u/x/z/s").mounted("/home/u/x/z");
  Policy in_home = with({.path = "/home/u/x/z/s", .access = Access::kNone});
  in_home.filesystem.scratch = {"/home/u/x/z"};
  EXPECT_TRUE(plan(host, in_home).view.masks.contains("/home/u/x/z")) << "the twin: no mask of the home shows the mount";
  EXPECT_EQ(plan(host, in_home).view.caches.front().path, "/home/u/x/z");
  in_home.filesystem.entries.push_back({.path = "/home/u/x", .access = Access::kNone});
  in_home.filesystem.entries.push_back({.path = "/home/u/x/y", .access = Access::kWrite});
  const PathPlan closed = plan(host, in_home);
  EXPECT_FALSE(closed.view.masks.contains("/home/u/x/z"));
  EXPECT_TRUE(std::ranges::none_of(closed.view.caches, [](const Cache& cache) { return cache.path == "/home/u/x/z"; }));
}

TEST(PlanPaths, ATemporaryDirectoryOpensNoHiddenDirectoryThatHoldsTheHome) {
  FakeHost host = usual_host();
  host.dir("/home/u/tmp").dir("/srv/ws");
  const Workplace place{.workspace = "/srv/ws", .cwd = "/srv/ws", .home = "/home/u"};
  Policy policy = with({.path = "/home", .access = Access::kNone});
  EXPECT_EQ(refusal(host, policy, place), "") << "the twin";
  policy.filesystem.temp_dir = "/home/u/tmp";
  EXPECT_NE(refusal(host, policy, place).find("inside hidden `/home`"), std::string::npos) << refusal(host, policy, place);
}

TEST(PlanPaths, TheWorkspaceCannotBeHidden) {
  EXPECT_NE(
      refusal(usual_host(), with({.path = "/home/u", .access = Access::kNone})).find("the workspace `/home/u/ws` lies inside it"),
      std::string::npos);
}

TEST(PlanPaths, AWorkspaceBelowTmpIsProtectedAndHiddenInLikeAnyOther) {
  FakeHost host = usual_host();
  host.dir("/tmp/ws/.vscode").file("/tmp/ws/secret").dir("/tmp/ws");
  const Workplace place{.workspace = "/tmp/ws", .cwd = "/tmp/ws", .home = "/home/u"};
  const PathPlan paths = plan(host, with({.path = "/tmp/ws/secret", .access = Access::kNone}), place);
  EXPECT_TRUE(std::ranges::count(paths.readonly, "/tmp/ws/.vscode"));
  EXPECT_TRUE(hides(paths, "/tmp/ws/secret"));
}

TEST(PlanPaths, NoMaskShowsAPrivateDirectoryOfTheHosts) {
  FakeHost host = usual_host();
  const Workplace absent{.workspace = "/home/u/ws", .cwd = "/home/u/ws", .home = "/tmp/none"};
  EXPECT_TRUE(plan(host, {}, absent).view.masks.empty());
  host.dir("/tmp/home");
  const Workplace below{.workspace = "/home/u/ws", .cwd = "/home/u/ws", .home = "/tmp/home"};
  const PathPlan hidden = plan(host, with({.path = "/tmp/home", .access = Access::kNone}), below);
  EXPECT_FALSE(hidden.view.masks.contains("/tmp"));
  EXPECT_TRUE(hides(hidden, "/tmp/home"));
  EXPECT_TRUE(plan(host, {}, below).view.masks.contains("/tmp/home")) << "the twin";
}

}  // namespace
}  // namespace belljar::backend
