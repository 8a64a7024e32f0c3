// No clause is a constant: each that can read `full` reads less once what holds it is taken out of the plan, and each of what a
// start goes on without lowers its clause.
#include "backend/native/report.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/landlock/report.h"
#include "backend/native/confine.h"
#include "backend/native/tree.h"
#include "backend/paths/live_rules.h"
#include "backend/paths/support_plan.h"
#include "backend/paths/view.h"
#include "belljar/exec_result.h"
#include "belljar/policy.h"
#include "broker/file_rules.h"
#include "kernel/seccomp.h"
#include "launch/launcher.h"
#include "launch/plan.h"
#include "runtime/enforcement.h"

namespace belljar::backend {
namespace {

using Change = std::function<void(Prepared&)>;

Enforced enforced(const EnforcementReport& report, const std::string& name) {
  const auto found = std::ranges::find(report, name, &EnforcementClause::clause);
  EXPECT_NE(found, report.end()) << name;
  return found == report.end() ? Enforced::kNone : found->enforced;
}

// Every clause that is full in `reported(nothing)` has a change that takes its locks away, and is less then.
void walk(const std::function<EnforcementReport(const Change&)>& reported, const std::multimap<std::string, Change>& changes) {
  const EnforcementReport whole = reported([](Prepared&) {});
  for (const EnforcementClause& clause : whole) {
    EXPECT_TRUE(clause.enforced != Enforced::kFull || changes.contains(clause.clause)) << clause.clause << " cannot be provoked";
  }
  for (const auto& [name, change] : changes) {
    EXPECT_EQ(enforced(whole, name), Enforced::kFull) << name;
    EXPECT_NE(enforced(reported(change), name), Enforced::kFull) << name;
  }
}

Change without(std::uint64_t flag) {
  return [flag](Prepared& prepared) { prepared.plan.clone_flags &= ~flag; };
}
Change without(launch::MountOpKind kind) {
  return [kind](Prepared& prepared) {
    std::erase_if(prepared.plan.mounts, [&](const launch::MountOp& op) { return op.kind == kind; });
  };
}
void without_filter(Prepared& prepared) { prepared.plan.seccomp.clear(); }
void with_privileges(Prepared& prepared) { prepared.plan.drop_privileges = false; }
void without_listener(Prepared& prepared) { prepared.plan.seccomp_listener = false; }
void without_rules(Prepared& prepared) { prepared.file_rules.reset(); }

FakeHost busy_host() {
  FakeHost host = usual_host();
  host.dir("/home/u/.ssh")
      .dir("/home/u/.cache")
      .dir("/home/u/.agent")
      .dir("/home/u/.agent/kept")
      .dir("/srv/keys")
      .dir("/home/u/ws/docs")
      .dir("/home/u/ws/.vscode");
  return host;
}

Policy busy_policy() {
  Policy policy = with({.path = "/srv/keys", .access = Access::kNone});
  policy.filesystem.entries.push_back({.path = "/home/u/ws/docs", .access = Access::kRead});
  policy.filesystem.protect = Protect::kAll;
  policy.filesystem.scratch = {"/home/u/.agent"};
  return policy;
}

EnforcementReport native(const FakeHost& host, const Policy& policy, const Change& change, const Workplace& place = kPlace) {
  const PathPlan paths = plan(host, policy, place);
  Prepared prepared;
  prepared.own_network = policy.network.mode != NetMode::kHost;
  prepared.plan.clone_flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS;
  if (prepared.own_network) prepared.plan.clone_flags |= CLONE_NEWNET;
  prepared.plan.identity = launch::Identity::kSelfMapped;
  prepared.plan.outside_uid = prepared.plan.inside_uid = 1000;
  if (policy.network.mode == NetMode::kProxy) prepared.plan.sockets.emplace_back();
  EXPECT_TRUE(build_tree_ops(host, paths.view, prepared.plan));
  prepared.file_rules = make_file_rules(policy, paths);
  confine(host, policy, place, paths, prepared);
  change(prepared);
  return report_native(host, policy, place, paths, prepared);
}

TEST(Report, EveryClauseOfTheNativeBackendIsHeldBySomething) {
  const FakeHost host = busy_host();
  const Policy policy = busy_policy();
  const std::multimap<std::string, Change> changes = {
      {"mode", without(CLONE_NEWNS)},
      {"mode", without_filter},
      {"filesystem.root", without(CLONE_NEWNS)},
      {"filesystem.root", without(launch::MountOpKind::kSetAttr)},
      {"filesystem.write", without(launch::MountOpKind::kSetAttr)},
      {"filesystem.readonly", without(launch::MountOpKind::kAttach)},
      {"filesystem.secrets", without(launch::MountOpKind::kAttach)},
      {"filesystem.tmp", without(launch::MountOpKind::kStage)},
      {"filesystem.caches", without(launch::MountOpKind::kOverlay)},
      {"filesystem.scratch", without(launch::MountOpKind::kOverlay)},
      {"protect.existing",
       [](Prepared& prepared) {
         without_rules(prepared);
         without(launch::MountOpKind::kAttach)(prepared);
       }},
      {"protect.absent", without_rules},
      {"protect.absent", without_listener},
      {"protect.nested", without_rules},
      {"identity", without(CLONE_NEWUSER)},
      {"identity", [](Prepared& prepared) { prepared.plan.outside_uid = 0; }},
      {"processes", without(CLONE_NEWPID)},
      {"processes", without(launch::MountOpKind::kProc)},
      {"kill", without(CLONE_NEWPID)},
      {"privileges", with_privileges},
      {"seccomp", without_filter},
      {"terminal", without(launch::MountOpKind::kDevpts)},
      {"keyring", without_filter},
      {"network", without(CLONE_NEWNET)},
      {"network.unix_sockets", without_listener},
  };
  walk([&](const Change& change) { return native(host, policy, change); }, changes);
  Policy proxied = policy;
  proxied.network.mode = NetMode::kProxy;
  const auto through = [&](const Change& change) { return enforced(native(host, proxied, change), "network"); };
  EXPECT_EQ(through([](Prepared&) {}), Enforced::kFull);
  EXPECT_EQ(through([](Prepared& prepared) { prepared.plan.sockets.clear(); }), Enforced::kNone);
}

// What lies below something hidden has no mount of its own, and is held all the same.
TEST(Report, WhatIsReadOnlyInAHiddenDirectoryIsHeld) {
  FakeHost host = busy_host();
  host.file("/home/u/ws/.github/copilot-instructions.md");
  Policy policy = busy_policy();
  policy.filesystem.entries.push_back({.path = "/home/u/ws/.github", .access = Access::kNone});
  EXPECT_EQ(enforced(native(host, policy, [](Prepared&) {}), "filesystem.readonly"), Enforced::kFull);
  EXPECT_EQ(enforced(native(host, policy, without(launch::MountOpKind::kAttach)), "filesystem.readonly"), Enforced::kNone);
  // What the host puts in its place cannot be opened, and can be seen.
  EXPECT_EQ(enforced(native(host, policy, [](Prepared&) {}), "filesystem.secrets"), Enforced::kPartial);
  host.dir("/srv/keys/deep/own");
  policy = busy_policy();
  policy.filesystem.entries.push_back({.path = "/srv/keys/deep/own", .access = Access::kNone});
  EXPECT_EQ(enforced(native(host, policy, [](Prepared&) {}), "filesystem.secrets"), Enforced::kFull);
}

EnforcementClause clause_of(const EnforcementReport& report, std::string_view name) {
  return *std::ranges::find(report, name, &EnforcementClause::clause);
}

TEST(Report, WhatPersistsOfScratchIsNamed) {
  FakeHost host = busy_host();
  Policy policy = busy_policy();
  const Change nothing = [](Prepared&) {};
  EXPECT_EQ(clause_of(native(host, policy, nothing), "filesystem.scratch").asked,
            "writes below /home/u/.agent discarded, none kept");
  policy.filesystem.entries.push_back({.path = "/home/u/.agent/kept", .access = Access::kWrite});
  EXPECT_EQ(clause_of(native(host, policy, nothing), "filesystem.scratch").asked,
            "writes below /home/u/.agent discarded, but for /home/u/.agent/kept, which are kept");
  // Beside it one that cannot have a layer: the workspace lies in it.
  policy.filesystem.scratch.emplace_back("/home/u");
  const EnforcementReport report = native(host, policy, nothing);
  EXPECT_EQ(clause_of(report, "filesystem.scratch").enforced, Enforced::kPartial);
  EXPECT_EQ(clause_of(report, "filesystem.scratch").detail, "/home/u has no layer here, and is not written to at all");
  policy.filesystem.scratch = {"/home/u"};
  EXPECT_EQ(enforced(native(host, policy, nothing), "filesystem.scratch"), Enforced::kPartial) << "none has one";
}

// Without its layer what is written would be the host's: such a start ends, and another goes on.
TEST(Report, ALayerOverSomethingWritableIsRequired) {
  FakeHost host = busy_host();
  host.dir("/home/u/ws/.agent");
  Policy policy = busy_policy();
  policy.filesystem.scratch = {"/home/u/ws/.agent"};
  const Change nothing = [](Prepared&) {};
  EXPECT_EQ(enforced(native(host, policy, nothing), "filesystem.scratch"), Enforced::kFull);
  EXPECT_EQ(enforced(native(host, policy, without(launch::MountOpKind::kAttach)), "filesystem.scratch"), Enforced::kNone);
  launch::Plan tree;
  ASSERT_TRUE(build_tree_ops(host, plan(host, policy).view, tree));
  for (const launch::MountOp& op : tree.mounts) {
    if (op.clause == "filesystem.scratch") {
      EXPECT_EQ(op.flags & launch::kOptional, 0U);
    }
  }
}

TEST(Report, ARestrictedRootIsOneOfItsOwn) {
  const FakeHost host = busy_host();
  Policy policy = with({.path = "/", .access = Access::kNone});
  policy.filesystem.entries.push_back({.path = "/etc", .access = Access::kRead});
  const auto root = [&](const Change& change) { return enforced(native(host, policy, change), "filesystem.root"); };
  EXPECT_EQ(root([](Prepared&) {}), Enforced::kFull);
  EXPECT_EQ(root(without(launch::MountOpKind::kPivot)), Enforced::kNone);
}

TEST(Report, ANestedUsersNamespaceIsNotAFullFilter) {
  Policy policy;
  policy.allow_nested_userns = true;
  EXPECT_EQ(enforced(native(busy_host(), policy, [](Prepared&) {}), "seccomp"), Enforced::kPartial);
}

TEST(Report, FullAccessAndExternalSayWhatTheirPlansDo) {
  launch::Plan plan;
  plan.clone_flags = CLONE_NEWPID | CLONE_NEWNS;
  plan.mounts.push_back({.kind = launch::MountOpKind::kProc});
  EXPECT_EQ(enforced(report_full_access(plan), "kill"), Enforced::kFull);
  EXPECT_EQ(enforced(report_full_access(plan), "mode"), Enforced::kFull);
  plan.clone_flags = 0;
  EXPECT_EQ(enforced(report_full_access(plan), "kill"), Enforced::kNone);
  EXPECT_EQ(enforced(report_full_access(plan), "mode"), Enforced::kNone);
  plan.subreaper = true;
  EXPECT_EQ(enforced(report_external(plan), "kill"), Enforced::kPartial);
  EXPECT_EQ(enforced(report_external(plan), "mode"), Enforced::kNone);
  plan.subreaper = false;
  EXPECT_EQ(enforced(report_external(plan), "kill"), Enforced::kNone);
}

// What a start goes on without.
TEST(Report, WhatIsSkippedLowersItsClause) {
  const FakeHost host = busy_host();
  Policy policy = busy_policy();
  policy.enable_weaker_nested_sandbox = true;
  PathPlan paths = plan(host, policy);
  paths.view.proc_optional = true;
  Prepared prepared;
  ASSERT_TRUE(build_tree_ops(host, paths.view, prepared.plan));
  std::vector<std::string> lowered;
  for (std::size_t i = 0; i < prepared.plan.mounts.size(); ++i) {
    const launch::MountOp& op = prepared.plan.mounts[i];
    if (op.clause.empty() || (op.flags & launch::kOptional) == 0) continue;
    EnforcementReport report{{std::string(op.clause), "", "", Enforced::kFull, ""}};
    runtime::lower_skipped(prepared.plan, {{static_cast<int>(i), EPERM}}, report);
    EXPECT_EQ(report[0].enforced, Enforced::kPartial) << op.clause;
    EXPECT_NE(report[0].detail.find(op.without), std::string::npos) << report[0].detail;
    lowered.emplace_back(op.clause);
  }
  for (const char* clause : {"processes", "filesystem.caches", "filesystem.scratch", "filesystem.root"})
    EXPECT_NE(std::ranges::find(lowered, clause), lowered.end()) << clause;
  EnforcementReport report{{"keyring", "", "", Enforced::kFull, ""}};
  runtime::lower_skipped(prepared.plan, {{launch::kSkippedKeyring, EPERM}}, report);
  EXPECT_EQ(report[0].enforced, Enforced::kPartial);
}

EnforcementReport landlock(const FakeHost& host, const Policy& policy, const Change& change, const Workplace& place = kPlace) {
  Policy files = policy;
  files.filesystem.tmp = Tmp::kShared;
  files.filesystem.caches = Caches::kOff;
  const PathPlan paths = plan(host, files, place);
  Prepared prepared;
  prepared.plan.subreaper = true;
  prepared.plan.outside_uid = 1000;
  prepared.plan.landlock = {.enabled = true, .handled_fs = 1, .scoped = 3};
  prepared.remove_after.emplace_back("/tmp/belljar-1");
  broker::EnforcedPaths held;
  held.writable = paths.writable;
  held.readonly = paths.readonly;
  held.readable = {"/"};
  prepared.file_rules = make_file_rules(policy, paths, std::move(held));
  kernel::SeccompSpec& filter = prepared.plan.seccomp_spec;
  filter.unix_sockets = kernel::UnixSockets::kBrokered;
  filter.file_calls = file_calls(prepared.file_rules.get());
  filter.allow_inet = policy.network.mode == NetMode::kHost;
  prepared.plan.seccomp_listener = true;
  prepared.plan.seccomp = kernel::build_filter(filter);
  change(prepared);
  return report_landlock_tier(host, policy, place, paths, prepared);
}

Workplace with_siblings(SiblingWorkspaces siblings) {
  Workplace place = kPlace;
  place.siblings = std::move(siblings);
  return place;
}

// What starts later works where it wants; what is told is what stays open.
TEST(Report, SiblingsAreHeldAsFarAsTheyAreKnown) {
  FakeHost host = busy_host();
  host.dir("/srv/b");
  const Change nothing = [](Prepared&) {};
  const auto clause = [&](const EnforcementReport& report) {
    const auto found = std::ranges::find(report, "filesystem.siblings", &EnforcementClause::clause);
    return found == report.end() ? EnforcementClause{} : *found;
  };
  const auto in = [&](const Policy& policy, const SiblingWorkspaces& siblings, const Change& change) {
    return clause(native(host, policy, change, with_siblings(siblings)));
  };
  const SiblingWorkspaces one{.hidden = {"/srv/b"}};
  const EnforcementClause held = in(busy_policy(), one, nothing);
  EXPECT_EQ(held.enforced, Enforced::kPartial);
  EXPECT_EQ(held.asked, "workspaces of this user's other sandboxes hidden, 1 now");
  EXPECT_EQ(held.detail, "a directory that a sandbox starts to work in later, outside of what is hidden now, can be seen");
  EXPECT_EQ(clause(native(host, busy_policy(), nothing)).clause, "") << "nobody asked";

  Policy closed = with({.path = "/", .access = Access::kNone});
  EXPECT_EQ(in(closed, one, nothing).enforced, Enforced::kFull) << "nothing else of the host is shown";
  EXPECT_EQ(in(closed, one, without(CLONE_NEWNS)).enforced, Enforced::kNone);
  closed.filesystem.entries.push_back({.path = "/etc", .access = Access::kRead});
  EXPECT_EQ(in(closed, one, nothing).detail, "a directory that a sandbox starts to work in later can be seen if it lies in `/etc`");

  const EnforcementClause missing = in(busy_policy(), one, without(launch::MountOpKind::kAttach));
  EXPECT_EQ(missing.enforced, Enforced::kNone);
  EXPECT_TRUE(missing.best_effort) << "a default ends no start";
  EXPECT_FALSE(in(busy_policy(), {.hidden = {"/srv/b"}, .asked = true}, without(launch::MountOpKind::kAttach)).best_effort);
  EXPECT_EQ(in(busy_policy(), {.unknown = "no state directory"}, nothing).enforced, Enforced::kNone);
  EXPECT_TRUE(in(closed, {.visible = {"`/home/u/ws/sub` (it lies in this workspace)"}}, nothing)
                  .detail.starts_with("`/home/u/ws/sub` (it lies in this workspace) stays visible"));

  const auto tier = [&](const Change& change) {
    return clause(landlock(host, busy_policy(), change, with_siblings(one))).enforced;
  };
  EXPECT_EQ(tier(nothing), Enforced::kPartial);
  EXPECT_EQ(tier(without_rules), Enforced::kPartial) << "Landlock alone";
  EXPECT_EQ(tier([](Prepared& prepared) { prepared.plan.landlock.enabled = false; }), Enforced::kNone);
}

TEST(Report, AllSocketsAreNotThoseThatAreHidden) {
  Policy policy = busy_policy();
  policy.network.allow_all_unix_sockets = true;
  const Change nothing = [](Prepared&) {};
  EXPECT_EQ(enforced(native(busy_host(), policy, nothing), "network.unix_sockets"), Enforced::kPartial) << "below an overlay";
  policy.filesystem.secrets = Secrets::kNone;
  policy.filesystem.entries.clear();
  policy.filesystem.caches = Caches::kOff;
  EXPECT_EQ(enforced(native(busy_host(), policy, nothing), "network.unix_sockets"), Enforced::kFull) << "the twin: there is none";
  const auto tier = [&](kernel::UnixSockets sockets) {
    const auto change = [&](Prepared& prepared) { prepared.plan.seccomp_spec.unix_sockets = sockets; };
    return enforced(landlock(busy_host(), policy, change), "network.unix_sockets");
  };
  EXPECT_EQ(tier(kernel::UnixSockets::kAnyJudged), Enforced::kPartial) << "datagrams";
  EXPECT_EQ(tier(kernel::UnixSockets::kAll), Enforced::kNone) << "nobody judges";
}

TEST(Report, EveryClauseOfTheLandlockTierIsHeldBySomething) {
  const FakeHost host = busy_host();
  const Change no_domain = [](Prepared& prepared) { prepared.plan.landlock.enabled = false; };
  const Change direct = [](Prepared& prepared) { prepared.plan.seccomp_spec.file_calls = kernel::FileCalls::kDirect; };
  const std::multimap<std::string, Change> changes = {
      {"mode", no_domain},
      {"filesystem.secrets", no_domain},
      {"filesystem.secrets", direct},
      {"filesystem.readonly", direct},
      {"protect.existing", without_rules},
      {"protect.absent", direct},
      {"protect.nested", without_listener},
      {"identity", [](Prepared& prepared) { prepared.plan.outside_uid = 0; }},
      {"privileges", with_privileges},
      {"seccomp", without_filter},
      {"terminal", no_domain},
      {"keyring", with_privileges},
      {"network", [](Prepared& prepared) { prepared.plan.seccomp_spec.allow_inet = true; }},
      {"network.unix_sockets", without_listener},
  };
  walk([&](const Change& change) { return landlock(host, busy_policy(), change); }, changes);
  const EnforcementReport bare = landlock(host, busy_policy(), no_domain);
  for (const char* never_full : {"filesystem.root", "processes"})
    EXPECT_EQ(enforced(bare, never_full), Enforced::kNone) << never_full;
}

}  // namespace
}  // namespace belljar::backend
